"""Programs of the right names stand in for ffmpeg and yt-dlp."""

import os
import sys

import h5py
import numpy
import pytest

from fuel_data.commands.convert import main as convert
from fuel_data.commands.download import main as download
from fuel_data.datasets.youtube_audio import YouTubeAudio

FFMPEG = """
import sys
arguments = sys.argv[1:]
assert arguments[arguments.index("-protocol_whitelist") + 1] == "file,pipe"
assert arguments[arguments.index("-f") + 1] == "s16le"
path = arguments[arguments.index("-i") + 1].removeprefix("file:")
channels, rate = (int(arguments[arguments.index(flag) + 1]) for flag in ("-ac", "-ar"))
with open(path) as file:
    text = file.read()
if text == "damaged":
    sys.exit("moov atom not found")
for number in range(len(text)):
    for channel in range(channels):
        sys.stdout.buffer.write((rate + 10 * number - channel).to_bytes(2, "little", signed=True))
"""
YT_DLP = """
import sys
path = sys.argv[sys.argv.index("--output") + 1].replace("%%", "%")
if sys.argv[-1].endswith("=gone"):
    sys.exit("ERROR: Video unavailable")
with open(path, "w") as file:
    file.write(sys.argv[-1])
"""


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "100%").mkdir()
    for name, program in (("ffmpeg", FFMPEG), ("yt-dlp", YT_DLP)):
        path = tmp_path / "bin" / name
        path.write_text(f"#!{sys.executable}\n{program}")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path / "100%"))
    monkeypatch.chdir(tmp_path / "100%")
    return tmp_path / "bin"


def test_sound_is_decoded_into_one_example_of_samples_and_channels():
    with open("a-b_1.m4a", "w") as file:
        file.write("abc")

    arguments = ["--youtube-id", "a-b_1", "--channels", "2", "--sample", "8000"]
    assert convert(["youtube_audio", *arguments]) == 0

    data = YouTubeAudio("a-b_1")
    (features,) = data.get_data(request=slice(0, 1))
    assert features.dtype == numpy.int16
    assert features.tolist() == [[[8000, 7999], [8010, 8009], [8020, 8019]]]
    assert data.axis_labels == {"features": ("batch", "time", "feature")}
    assert data.which_sets == ("train",)
    with h5py.File("a-b_1.hdf5") as file:
        assert file["features"].attrs["sample_rate"] == 8000
    assert sorted(os.listdir()) == ["a-b_1.hdf5", "a-b_1.m4a"]


def test_sound_is_fetched_once_and_removed(capsys):
    path = "./id.m4a"
    assert download(["youtube_audio", "--youtube-id", "id"]) == 0
    with open(path) as file:
        assert file.read() == "https://www.youtube.com/watch?v=id"
    with open(path, "w") as file:
        file.write("mine")

    assert download(["youtube_audio", "--youtube-id", "id"]) == 0
    with open(path) as file:
        assert file.read() == "mine"
    assert download(["youtube_audio", "--youtube-id", "id", "--clear"]) == 0
    assert os.listdir() == []
    assert "./id.m4a: removed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "content", "words"),
    [
        (convert, None, "Not in the folder '.': id.m4a"),
        (convert, "damaged", "id.m4a cannot be decoded by ffmpeg: moov atom not found"),
        (convert, "", "id.m4a: there is no sound in it"),
    ],
)
def test_what_cannot_be_converted_is_said(capsys, command, content, words):
    if content is not None:
        with open("id.m4a", "w") as file:
            file.write(content)

    assert command(["youtube_audio", "--youtube-id", "id"]) == 1

    assert words in capsys.readouterr().err
    assert "id.hdf5" not in os.listdir()


def test_programs_that_are_missing_are_named_with_the_way_to_get_them(programs, capsys):
    for name in ("ffmpeg", "yt-dlp"):
        (programs / name).unlink()
    assert download(["youtube_audio", "--youtube-id", "id"]) == 1
    with open("id.m4a", "w") as file:
        file.write("sound")
    assert convert(["youtube_audio", "--youtube-id", "id"]) == 1

    said = capsys.readouterr().err
    assert "the program yt-dlp fetches from YouTube, and it is not on the PATH. Install it" in said
    assert "the program ffmpeg decodes the sound, and it is not on the PATH. Install it" in said


def test_what_fails_elsewhere_and_what_is_no_id_is_said(capsys):
    assert download(["youtube_audio", "--youtube-id", "gone"]) == 1
    assert "gone.m4a could not be fetched: ERROR: Video unavailable" in capsys.readouterr().err
    for command in (download, convert):
        assert command(["youtube_audio", "--youtube-id", "../x"]) == 1
        assert ": --youtube-id must be letters, digits, - and _" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match="`fuel-convert youtube_audio --youtube-id id -o"):
        YouTubeAudio("id")
