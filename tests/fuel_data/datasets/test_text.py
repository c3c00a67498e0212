import gzip
import json
import os
import pickle

import pytest

from fuel_data.datasets.one_billion_word import OneBillionWord
from fuel_data.datasets.text import TextFile
from fuel_data.schemes import ConstantScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.testing import check_contract
from fuel_data.transformers import Batch, Padding, Shuffle

WORDS = {"<S>": 0, "</S>": 1, "<UNK>": 2, "a": 3, "ö": 4, "c": 5}


def sentences(dataset):
    return [sentence for (sentence,) in DataStream(dataset).get_epoch_iterator()]


def write(folder, name, text, encoding="utf-8"):
    path = folder / name
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.fixture
def two(tmp_path):
    return [write(tmp_path, "1.txt", "a ö\n\nc dog\n"), write(tmp_path, "2.txt", "c\r\na")]


def test_words_become_numbers_between_the_marks_of_a_sentence(two):
    expected = [[0, 3, 4, 1], [0, 1], [0, 5, 2, 1], [0, 5, 1], [0, 3, 1]]

    assert sentences(TextFile(two, WORDS)) == expected
    bare = TextFile(two, WORDS, bos_token=None, eos_token=None)
    assert sentences(bare) == [sentence[1:-1] for sentence in expected]


def test_characters_are_those_of_the_line_without_its_ends(tmp_path):
    path = write(tmp_path, "x.txt", " a c \n")

    dataset = TextFile(path, {**WORDS, " ": 9}, level="character", preprocess=str.swapcase)

    assert sentences(dataset) == [[0, 2, 9, 2, 1]]
    assert sentences(TextFile(path, {**WORDS, " ": 9}, level="character")) == [[0, 3, 9, 5, 1]]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-8-sig", "utf-32-le"])
@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_packed_files_and_encodings_give_the_same_and_go_on_anywhere(tmp_path, encoding, suffix):
    path = write(tmp_path, f"x.{suffix}", "a\nö c\nc\n", encoding)
    stream = DataStream(TextFile([path, path], WORDS, encoding=encoding))

    whole = list(stream.get_epoch_iterator())

    assert whole == [([0, 3, 1],), ([0, 4, 5, 1],), ([0, 5, 1],)] * 2
    for step in range(7):
        with stream.get_epoch_iterator() as iterator:
            for _ in range(step):
                next(iterator)
            state = iterator.get_state()
        again = stream.get_epoch_iterator()
        again.set_state(state)
        assert list(again) == whole[step:]


def test_streams_over_text_keep_the_contract(tmp_path):
    def build(num_examples):
        lines = "".join("a ö c x"[: 1 + 2 * (number % 4)] + "\n" for number in range(num_examples))
        first = write(tmp_path, f"{num_examples}.txt", lines)
        return DataStream(TextFile([first, write(tmp_path, "b.txt.gz", "c\na")], WORDS))

    check_contract(build)
    batches = Padding(Batch(build(6), ConstantScheme(4)))
    assert [batch[0].shape for batch in batches.get_epoch_iterator()] == [(4, 6), (4, 4)]


def test_a_resumed_run_goes_to_its_line_without_reading_what_is_before(tmp_path, monkeypatch):
    path = write(tmp_path, "x.txt", "a\n" * 1000 + "c\n")
    stream = DataStream(TextFile(path, WORDS))
    with stream.get_epoch_iterator() as iterator:
        for _ in range(1000):
            next(iterator)
        state = iterator.get_state()
    write(tmp_path, "x.txt", "x\n" * 1000 + "c\n")
    again = stream.get_epoch_iterator()
    again.set_state(state)

    assert list(again) == [([0, 5, 1],)]
    assert state["position"]["dataset"] == [0, 2002, 2000]


def test_a_file_that_has_changed_since_is_refused(two):
    stream = DataStream(TextFile(two, WORDS))
    iterator = stream.get_epoch_iterator()
    next(iterator)
    saved = pickle.dumps(iterator)
    iterator.close()
    two[0].write_text("another\n")

    with pytest.raises(ValueError, match=r"1.txt has changed since .* had 12 bytes, and has 8 now"):
        next(pickle.loads(saved))


def test_only_the_file_that_is_read_is_open(two):
    def open_files():
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        targets = [os.readlink(link) for link in links if os.path.islink(link)]
        return [os.path.basename(name) for name in targets if name in map(str, two)]

    iterator = DataStream(TextFile(two, WORDS)).get_epoch_iterator()
    assert open_files() == []
    next(iterator)
    assert open_files() == ["1.txt"]
    for _ in range(3):
        next(iterator)
    assert open_files() == ["2.txt"]
    assert len(list(iterator)) == 1
    assert open_files() == []


@pytest.mark.parametrize("name", ["d.json", "d.pkl", "d.txt"])
def test_a_dictionary_is_read_from_its_path_and_stays_out_of_pickles(tmp_path, two, name):
    contents = {
        "d.json": json.dumps(WORDS).encode(),
        "d.pkl": pickle.dumps(WORDS),
        "d.txt": "\n".join(WORDS).encode(),
    }
    (tmp_path / name).write_bytes(contents[name])

    dataset = TextFile(two, tmp_path / name)

    assert dataset.dictionary == WORDS
    assert b"UNK" not in pickle.dumps(dataset).replace(b"<UNK>", b"", 1)
    assert sentences(pickle.loads(pickle.dumps(dataset))) == sentences(TextFile(two, WORDS))
    assert dataset.identity() == TextFile(two, WORDS).identity()


def test_lines_of_a_dictionary_end_in_line_feeds_only(tmp_path, two):
    odd = [f"a{char}b" for char in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r"]
    path = write(tmp_path, "d.txt", "\n".join([*WORDS, *odd]) + "\r\n")

    tokens = TextFile(two, path).dictionary

    assert tokens == {**WORDS, **{token: 6 + number for number, token in enumerate(odd)}}


@pytest.mark.parametrize(
    ("name", "text"), [("d.txt", "<UNK>\na\nb\na\n"), ("d.json", '{"a": 1, "b": 2, "a": 3}')]
)
def test_a_dictionary_with_a_token_twice_is_refused(tmp_path, two, name, text):
    path = write(tmp_path, name, text)

    with pytest.raises(ValueError, match=rf"{name} cannot be read: 'a' has two numbers, 1 and 3\."):
        TextFile(two, path)


def test_a_pickled_dictionary_runs_no_code(tmp_path, two):
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(os.getcwd))

    with pytest.raises(ValueError, match=r"evil.pkl cannot be read: it asks for posix.getcwd"):
        TextFile(two, tmp_path / "evil.pkl")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"level": "letter"}, ValueError, "`level` must be 'word' or 'character'; got 'letter'"),
        ({"bos_token": "<s>"}, ValueError, "`bos_token` is '<s>', which is not in the dictionary"),
        ({"files": ["/missing.txt"]}, FileNotFoundError, "there is no file /missing.txt"),
        ({"dictionary": "/missing.json"}, FileNotFoundError, "missing.json"),
    ],
)
def test_wrong_arguments_are_refused(two, arguments, error, words):
    with pytest.raises(error, match=words):
        TextFile(**{"files": two, "dictionary": WORDS, **arguments})


def test_what_is_met_on_the_way_is_said_with_its_place(tmp_path, two):
    latin = write(tmp_path, "latin.txt", "a\nö\n", "latin-1")
    with pytest.raises(ValueError, match=r"latin.txt, near byte 2 is not utf-8: .*Say by `encodin"):
        sentences(TextFile(latin, WORDS))
    with pytest.raises(KeyError, match=r"1.txt, near byte 12: 'dog' is not in the dictionary"):
        sentences(TextFile(two, WORDS, unk_token=None))
    with pytest.raises(ValueError, match="'utf-9', which is unknown"):
        sentences(TextFile(two, WORDS, encoding="utf-9"))
    scheme = SequentialScheme(3, 1)
    with pytest.raises(ValueError, match="takes a state from `open` and no request"):
        next(DataStream(TextFile(two, WORDS), iteration_scheme=scheme).get_epoch_iterator())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("change", ["first byte", "tables", "checksum", "end"])
def test_a_packed_file_that_is_damaged_is_named(tmp_path, encoding, change):
    packed = write(tmp_path, "x.txt.gz", "a\n" * 5000, encoding)
    stream = DataStream(TextFile(packed, WORDS, encoding=encoding))
    with stream.get_epoch_iterator() as iterator:
        for _ in range(4999):
            next(iterator)
        state = iterator.get_state()
    data = bytearray(packed.read_bytes())
    if change == "end":
        del data[-9:]
    else:
        data[{"first byte": 0, "tables": 10, "checksum": -8}[change]] ^= 0xFF
    packed.write_bytes(data)
    words = r"TextFile: .*x.txt.gz, near (byte|line) [\d,]+: the file is cut short or damaged: ."

    with pytest.raises(ValueError, match=words):
        list(stream.get_epoch_iterator())
    if change != "end":
        again = stream.get_epoch_iterator()
        with pytest.raises(ValueError, match=words):
            again.set_state(state)
            list(again)


@pytest.mark.parametrize("inside", ["", "1-billion-word-language-modeling-benchmark-r13output/"])
def test_the_billion_words_are_found_in_the_data_path(tmp_path, monkeypatch, inside):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))
    for folder, name, text in (
        ("training", "news.en-00099-of-00100", "a c\n"),
        ("training", "news.en-00001-of-00100", "c\n"),
        ("heldout", "news.en.heldout-00000-of-00050", "ö\n"),
    ):
        place = tmp_path / f"1-billion-word/{inside}{folder}-monolingual.tokenized.shuffled"
        place.mkdir(parents=True, exist_ok=True)
        write(place, name, text)

    assert sentences(OneBillionWord("training", [99, 1], WORDS)) == [[0, 3, 5, 1], [0, 5, 1]]
    assert sentences(OneBillionWord("heldout", [0], WORDS, eos_token=None)) == [[0, 4]]
    with pytest.raises(FileNotFoundError, match="`fuel-download one_billion_word` fetches"):
        OneBillionWord("heldout", [1], WORDS)


def test_wrong_sets_and_partitions_are_refused():
    with pytest.raises(ValueError, match="no set 'train'. Did you mean 'training'"):
        OneBillionWord("train", [1], WORDS)
    with pytest.raises(ValueError, match="partitions of 'training' are 1 to 99; got 0"):
        OneBillionWord("training", [0], WORDS)
    with pytest.raises(ValueError, match="partitions of 'heldout' are 0 to 49; got 50"):
        OneBillionWord("heldout", [50], WORDS)


def test_sentences_can_be_shuffled(tmp_path):
    path = write(tmp_path, "x.txt.gz", "".join(f"{number}\n" for number in range(60)))
    dictionary = {str(number): number for number in range(60)}
    text = TextFile(path, dictionary, bos_token=None, eos_token=None, unk_token=None)
    stream = Shuffle(DataStream(text), buffer_size=20)

    epochs = [[number for ([number],) in stream] for _ in range(2)]

    assert [sorted(epoch) for epoch in epochs] == [list(range(60))] * 2
    assert list(range(60)) != epochs[0] != epochs[1]
