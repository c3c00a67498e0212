import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_data.commands.convert import main as convert
from fuel_data.commands.download import main as download
from fuel_data.commands.info import main as info
from fuel_data.commands.output import WriteError, say, writing

ROOT = str(Path(__file__).parents[3])


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "command",
    [
        ["info", "digits.hdf5"],
        ["convert", "digits", "-r", "again.hdf5"],
        ["download", "mnist", "--clear"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_whose_reader_has_left_ends_quietly(tmp_path, command, unbuffered):
    convert(["digits", "-o", str(tmp_path)])
    name, *arguments = command
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        process = subprocess.run(
            [sys.executable, "-m", f"fuel_data.commands.{name}", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ROOT, "PYTHONUNBUFFERED": unbuffered},
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(write_end)

    assert "Broken" not in process.stderr
    assert process.returncode == 0
    assert (name != "convert") or (tmp_path / "again.hdf5").exists()


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    convert(["digits", "-o", str(folder)])
    return folder / "digits.hdf5"


COMMANDS = {
    "info": lambda digits: [str(digits)],
    "convert": lambda digits: ["digits", "-o", str(digits.parent)],
    "download": lambda digits: ["mnist", "--clear"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_whose_words_find_no_room_says_so(digits, name):
    # Only opened: it is the device that is always full.
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", f"fuel_data.commands.{name}", *COMMANDS[name](digits)],
            env={**os.environ, "PYTHONPATH": ROOT},
            cwd=digits.parent,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )

    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].endswith(
        "standard output could not be written: No space left on device."
    )
    assert "Traceback" not in process.stderr and "Exception" not in process.stderr


def test_what_a_terminal_has_no_letters_for_is_shown_by_numbers(monkeypatch, tmp_path):
    with open(tmp_path / "out", "w", encoding="ascii") as file:
        monkeypatch.setattr(sys, "stdout", file)
        say("a\udcffé")
        monkeypatch.undo()

    assert (tmp_path / "out").read_bytes() == b"a\\udcff\\xe9\n"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "'here' could not be written: No space left on device. It stays. Make ro"),
        (errno.EDQUOT, "'here' could not be written: Disk quota exceeded. It stays. Make room the"),
        (errno.EACCES, "'here' could not be written: Permission denied. It stays. Go elsewhere."),
        (errno.EROFS, "'here' could not be written: Read-only file system. It stays. Go elsewhere"),
        (errno.EEXIST, "'here' could not be written: There is something that is no folder. It st"),
    ],
)
def test_an_error_of_the_system_says_what_could_not_be_written_and_the_way_out(number, words):
    with pytest.raises(WriteError) as raised, writing("here", "go elsewhere", "It stays."):
        raise OSError(number, os.strerror(number), "/some/file")
    assert str(raised.value).startswith(words)


def test_an_error_of_a_file_that_is_read_passes_as_it_is(tmp_path):
    def fail(number, name):
        with writing("here", "go elsewhere", below=tmp_path / "out"):
            raise OSError(number, os.strerror(number), name)

    with pytest.raises(PermissionError, match="Permission denied: '.*in/x'"):
        fail(errno.EACCES, str(tmp_path / "in" / "x"))
    with pytest.raises(WriteError, match="'here' could not be written: Permission denied"):
        fail(errno.EACCES, str(tmp_path / "out" / "x"))
    # A full disk is always that of what is written.
    with pytest.raises(WriteError, match="Make room there, or go elsewhere"):
        fail(errno.ENOSPC, None)


@pytest.mark.parametrize(
    ("main", "args", "words"),
    [
        (convert, ["digits", "-o", "file"], "is no folder. Nothing was written, and an old file"),
        (convert, ["digits", "-o", "file/x"], "Not a directory. Nothing was written, and an old f"),
        (convert, ["digits", "-r", "pipe.h5"], "no file, choose another name. Nothing was written"),
        (info, ["DIGITS", "--preview", "pipe.png"], "choose another name. Choose another file by"),
        (info, ["DIGITS", "--preview", "no/x.png"], "There is no folder 'no'. Choose another file"),
        (download, ["mnist", "-d", "file"], "is no folder. What has come is kept as NAME.part for"),
    ],
)
def test_what_cannot_be_written_is_refused_in_words_and_nothing_is_left(
    digits, tmp_path, monkeypatch, capsys, main, args, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("old")
    pipes = ["pipe.h5", "pipe.png"]
    for name in pipes:
        os.mkfifo(tmp_path / name)

    assert main([str(digits) if arg == "DIGITS" else arg for arg in args]) == 1

    error = capsys.readouterr().err
    assert "could not be written: " in error and words in error
    assert sorted(os.listdir(tmp_path)) == ["file", *pipes]
    assert (tmp_path / "file").read_text() == "old"
    assert all((tmp_path / name).is_fifo() for name in pipes)


@contextlib.contextmanager
def files_of_at_most(num_bytes):
    """Let the disk be full, as far as this process sees."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


STREAM = """
import numpy
from fuel_data.datasets import IndexableDataset

def build():
    return IndexableDataset({"x": numpy.zeros((500, 100))}).get_example_stream()
"""


@pytest.mark.parametrize("num_bytes", [0, 3000, 120_000])
@pytest.mark.parametrize(
    ("main", "args"),
    [
        (convert, ["digits", "-r", "old"]),
        (convert, ["stream", "--train", "recipe.py:build", "-r", "old"]),
        (info, ["DIGITS", "--preview", "old.png"]),
    ],
    ids=["digits", "stream", "preview"],
)
def test_on_a_full_disk_the_old_file_stays_and_nothing_else(
    digits, tmp_path, monkeypatch, capsys, main, args, num_bytes
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.py").write_text(STREAM)
    is_picture = main is info
    old = tmp_path / ("old.png" if is_picture else "old.hdf5")
    old.write_text("old")
    with files_of_at_most(num_bytes // 10 if is_picture else num_bytes):
        status = main([str(digits) if arg == "DIGITS" else arg for arg in args])
    sys.modules.pop("recipe", None)

    assert status == 1
    error = capsys.readouterr().err
    assert "could not be written: File too large." in error and "Make room there, or " in error
    assert old.read_text() == "old"
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {old.name, "recipe.py"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a/b", "--output-filename is a name without a folder, which -o says, as in `-o a -r b`"),
        ("/x/b", "as in `-o /x -r b`; got '/x/b'."),
        ("", "is a name without a folder, which -o says; got ''."),
    ],
)
def test_a_name_that_is_a_path_is_refused(tmp_path, capsys, name, words):
    assert convert(["digits", "-o", str(tmp_path), "-r", name]) == 2

    assert words in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_called_like_a_file_is_taken_for_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert convert(["digits", "-o", "data/x.hdf5"]) == 2
    words = "is a folder, and -r says the name in it, as in `-o data -r x.hdf5`; got 'data/x.hdf5'"
    assert words in capsys.readouterr().err
    assert not os.listdir(tmp_path)

    os.mkdir("y.h5")
    assert convert(["digits", "-o", "y.h5"]) == 0
    assert os.listdir("y.h5") == ["digits.hdf5"]


def test_a_tilde_that_the_shell_left_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert convert(["digits", "--output-directory=~/data"]) == 0
    assert os.listdir(tmp_path) == ["data"]


STOPPED = """
import os, signal

def fill(subparser):
    return convert

def convert(directory, output_directory, output_filename="stopped.hdf5"):
    open(os.path.join(output_directory, output_filename), "w").write("half")
    signal.raise_signal(signal.{})

all_converters = [("stopped", fill)]
"""


@pytest.mark.parametrize(("number", "word"), [("SIGINT", "interrupted"), ("SIGTERM", "terminated")])
def test_a_command_that_is_stopped_tidies_up_and_says_so(tmp_path, number, word):
    (tmp_path / "stopped.py").write_text(STOPPED.format(number))
    process = subprocess.run(
        [sys.executable, "-m", "fuel_data.commands.convert", "stopped", "-o", "out"],
        env={**os.environ, "PYTHONPATH": ROOT, "FUEL_EXTRA_CONVERTERS": "stopped.py"},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )

    assert process.stderr == f"fuel-convert: {word}; no file is half written.\n"
    assert process.returncode == 128 + getattr(signal, number)
    assert os.listdir(tmp_path / "out") == []
