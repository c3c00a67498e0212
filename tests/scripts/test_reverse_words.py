"""The reverser of words reads a text, learns, writes by beam search, and survives being killed."""

import importlib
import os
import random
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy
import pytest

from bricks.serialization import load_state

SCRIPTS = Path(__file__).parents[2] / "scripts"
BATCHES_OF_EPOCH, SAVED_AT = 4, 6
OPTIONS = [
    "--epochs=2",
    "--dim=6",
    "--batch-size=16",
    "--learning-rate=0.02",
    "--checkpoint-every=2",
    "--write-every=2",
    "--beam-size=2",
]
# What the command runs, and an end that comes without any warning.
KILLED_RUN = f"""
import os, signal, sys
sys.path.insert(0, {str(SCRIPTS)!r})
import reverse_words
from extensions import TrainingExtension

class Killer(TrainingExtension):
    def after_batch(self, batch):
        if self.main_loop.status["iterations_done"] == {SAVED_AT + 1}:
            os.kill(os.getpid(), signal.SIGKILL)

main_loop = reverse_words.build_main_loop(reverse_words.parse_arguments(sys.argv[1:]))
main_loop.extensions.append(Killer())
main_loop.run(resume="auto")
"""


@pytest.fixture(scope="module")
def load_script():
    """A function that imports one of the scripts, which find each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        yield importlib.import_module


@pytest.fixture(scope="module")
def text(load_script, tmp_path_factory):
    """Write a text of words of a few letters, which make full batches, all of one length."""
    rng = random.Random(3)
    words = {"".join(rng.choices("abcde", k=rng.randint(3, 7))) for _ in range(120)}
    training, held_out = load_script("word_streams").split_words(" ".join(words))
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(", ".join([*training[: 16 * BATCHES_OF_EPOCH], *held_out[:6]]).upper() + ".")
    return path


def records_of(main_loop):
    first, last = BATCHES_OF_EPOCH, 2 * BATCHES_OF_EPOCH
    places = ((first, "train_cost"), (last, "train_cost"), (last, "words_right"))
    return [main_loop.log[batches][record] for batches, record in places]


def test_a_run_that_is_killed_goes_on_as_if_it_had_not_been(load_script, text, tmp_path):
    killed_folder, folder = tmp_path / "killed", tmp_path / "undisturbed"
    killed_folder.mkdir()
    folder.mkdir()
    arguments = [*OPTIONS, f"--text={text}", f"--checkpoint={killed_folder / 'run.zip'}"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS.parent)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, *arguments],
        env=environment,
        capture_output=True,
        timeout=240,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    status = load_state(killed_folder / "run.zip")["log"]["status"]
    assert status["iterations_done"] == SAVED_AT

    script = load_script("reverse_words")
    options = [*OPTIONS, f"--text={text}", f"--checkpoint={folder / 'run.zip'}"]
    main_loop = script.build_main_loop(script.parse_arguments(options))
    try:
        main_loop.run()
        undisturbed, records = load_state(folder / "run.zip"), records_of(main_loop)
        # What is compiled already is used again, to save time; all state is the killed run's.
        main_loop.restore(killed_folder / "run.zip")
        assert main_loop.log.status["iterations_done"] == SAVED_AT
        main_loop.run()
    finally:
        main_loop.data_stream.close()
        main_loop.find_extension("WriteWords").stream.close()

    resumed = load_state(folder / "run.zip")
    for part in ("parameters", "algorithm"):
        assert resumed[part].keys() == undisturbed[part].keys()
        for name, value in resumed[part].items():
            numpy.testing.assert_array_equal(value, undisturbed[part][name], name)
    assert records_of(main_loop) == records
    assert records[1] < records[0] and 0 <= records[2] <= 1


def test_held_out_words_are_no_others_and_written_backwards_in_batches(load_script, text):
    streams = load_script("word_streams")
    words, held_out = streams.split_words(streams.read_text(str(text)))
    written = {}
    for name, given in {"train": words, "test": held_out}.items():
        stream = getattr(streams, name)(str(text), batch_size=8)
        for batch in stream.get_epoch_iterator(as_dict=True):
            assert batch["words"].shape == batch["words_mask"].shape == batch["reversed"].shape
            assert len(batch["words"]) in streams.LENGTHS
            numpy.testing.assert_array_equal(batch["words_mask"][0], 1)
            for word, reverse in zip(batch["words"].T, batch["reversed"].T, strict=True):
                written[streams.decode(list(word))] = streams.decode(list(reverse))
        assert set(given) <= set(written)

    assert not set(words) & set(held_out) and len(held_out) == 6
    assert set(written) == {*words, *held_out}
    assert all(reverse == word[::-1] for word, reverse in written.items())


def r_record(flags, strings):
    """What R's `serialize` makes of a vector, in a record of a file that is loaded lazily."""
    head = b"X\n" + struct.pack(">iiii", 3, 0x40200, 0x30500, 5) + b"UTF-8"
    body = struct.pack(">ii", flags, len(strings))
    for string in strings:
        encoded = (string or "").encode()
        body += struct.pack(">ii", 0x40009, -1 if string is None else len(encoded)) + encoded
    return struct.pack(">I", len(head + body)) + zlib.compress(head + body)


def test_texts_are_read_from_files_of_r(load_script, tmp_path):
    path = tmp_path / "data.rdb"
    strings, others, more = ["Emma", "", None, "né"], [], ["x"]
    path.write_bytes(r_record(16, strings) + r_record(13, others) + r_record(16, more))

    assert load_script("word_streams").read_text(str(path)) == "Emma\n\n\nné\nx"


def test_a_missing_text_is_an_error_that_says_how_to_get_it(load_script):
    message = "there is no text 'no.txt'.*--text.*apt-get download r-cran-janeaustenr"
    with pytest.raises(FileNotFoundError, match=message):
        load_script("word_streams").train("no.txt")
