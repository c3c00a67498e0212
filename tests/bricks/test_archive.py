import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile

import numpy
import pytest

from bricks.archive import Archive, ArchiveWriter, DamagedArchive, ForeignFile

ARRAYS = {
    "/mlp/linear_0.W": numpy.arange(6, dtype="float32").reshape(2, 3),
    "algorithm/step_rule/0.velocity[/mlp/linear_0.W]": numpy.ones((2, 3), "float32"),
    "scalar": numpy.array(2.5),
    "empty": numpy.zeros((0, 3), "int64"),
    "fortran": numpy.asfortranarray(numpy.arange(6, dtype="uint8").reshape(2, 3)),
    "strided": numpy.arange(10)[::3],
    "big_endian": numpy.arange(3, dtype=">i2"),
    "text": numpy.array(["a", "bcd"]),
    "times": numpy.array(["2020-01-01"], "datetime64[D]"),
    "structured": numpy.array([(1, 2.0)], dtype=[("a", "int32"), ("b", "float64")]),
    "cyrillic": numpy.array([(1,)], dtype=[("буква", "int32")]),
}


def write_archive(path, arrays, members, manifest):
    with ArchiveWriter(path, manifest) as writer:
        for name, array in arrays.items():
            writer.add_array(name, array)
        for name, content in members.items():
            writer.add_member(name, content)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "checkpoint.zip"
    write_archive(path, ARRAYS, {"log.json": b"{}"}, {"python": "3.11"})
    return path


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_comes_back_with_its_dtype_shape_order_and_bits(path, name):
    with Archive(path) as archive:
        array = archive[name]

    assert array.dtype == ARRAYS[name].dtype
    assert array.shape == ARRAYS[name].shape
    assert array.tobytes() == ARRAYS[name].tobytes()
    assert array.flags.writeable
    assert name != "fortran" or array.flags.f_contiguous


def test_plain_numpy_reads_an_array_by_its_name(path):
    with numpy.load(path) as file:
        for name, array in ARRAYS.items():
            numpy.testing.assert_array_equal(file[name], array)


def test_the_names_are_those_that_were_written_in_their_order(path):
    with Archive(path) as archive:
        assert archive.names() == list(ARRAYS)
        assert archive.member_names() == ["log.json"]
        assert archive.member("log.json") == b"{}"
        assert "empty" in archive and "log.json" not in archive


def test_the_manifest_holds_the_writers_words_and_every_digest(path):
    with Archive(path) as archive:
        manifest = archive.manifest

    assert manifest["python"] == "3.11"
    assert manifest["format"] == {"name": "firebrick archive", "version": 1}
    assert manifest["members"]["/mlp/linear_0.W.npy"]["shape"] == [2, 3]
    assert manifest["members"]["/mlp/linear_0.W.npy"]["dtype"] == "float32"
    assert len(manifest["members"]) == len(ARRAYS) + 1
    assert all(len(member["crc32"]) == 8 for member in manifest["members"].values())
    assert manifest["members"]["log.json"]["sha256"] == hashlib.sha256(b"{}").hexdigest()


def test_nothing_is_compressed(path):
    with zipfile.ZipFile(path) as file:
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}


def test_the_same_content_gives_the_same_bytes(path, tmp_path):
    write_archive(tmp_path / "again", ARRAYS, {"log.json": b"{}"}, {"python": "3.11"})

    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_an_unknown_name_is_an_error_that_names_the_nearest(path):
    with Archive(path) as archive:
        with pytest.raises(KeyError, match=r"no array '/mlp/linear_0.w'.*'/mlp/linear_0.W'"):
            archive["/mlp/linear_0.w"]
        with pytest.raises(KeyError, match=r"no member .*log.*Known: log.json"):
            archive.member("log")


def test_two_members_of_one_name_are_refused_and_nothing_is_written(tmp_path):
    target = tmp_path / "twice"
    with (
        pytest.raises(ValueError, match="two members called 'a.npy'"),
        ArchiveWriter(target) as writer,
    ):
        writer.add_array("a", numpy.zeros(1))
        writer.add_array("a", numpy.zeros(1))

    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_a_zip_cannot_hold_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="cannot be the name"):
        write_archive(tmp_path / "a", {}, {name: b""}, {})


def test_a_member_that_would_read_as_an_array_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'a.npy' would read as an array"):
        write_archive(tmp_path / "a", {}, {"a.npy": b""}, {})


def test_an_array_of_objects_is_refused_by_its_name(tmp_path):
    with pytest.raises(ValueError, match="'ragged' has dtype object.*without pickling"):
        write_archive(tmp_path / "a", {"ragged": numpy.array([None])}, {}, {})


def test_an_error_in_the_middle_leaves_the_previous_file(path):
    before = path.read_bytes()
    with pytest.raises(RuntimeError, match="stop"), ArchiveWriter(path) as writer:
        writer.add_array("a", numpy.zeros(3))
        raise RuntimeError("stop")

    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def small_archive(path):
    arrays = {"/a.W": numpy.arange(3, dtype="float32")}
    write_archive(path, arrays, {"log.json": b'{"a": 1}'}, {"k": 1})
    return arrays


def read_whole(path):
    with Archive(path) as archive:
        return archive["/a.W"].tobytes(), archive.member("log.json")


def test_no_flipped_bit_goes_by_unnoticed_where_it_matters(tmp_path):
    path = tmp_path / "small"
    small_archive(path)
    good, content = read_whole(path), path.read_bytes()
    damaged = 0
    for position in range(len(content)):
        path.write_bytes(
            content[:position]
            + bytes([content[position] ^ 1 << position % 8])
            + content[position + 1 :]
        )
        try:
            assert read_whole(path) == good, f"byte {position} changed what is read"
        except (DamagedArchive, ForeignFile):
            damaged += 1

    # Dates and permissions in the zip's own tables may change; they carry nothing.
    assert damaged > 0.8 * len(content)


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_damaged(path, fraction):
    content = path.read_bytes()
    path.write_bytes(content[: int(fraction * len(content))])

    with pytest.raises(DamagedArchive, match="checkpoint.zip is damaged"):
        Archive(path)


@pytest.mark.parametrize("content", [b"", bytes(1000)])
def test_a_file_of_nothing_or_zeros_is_damaged(path, content):
    path.write_bytes(content)

    with pytest.raises(DamagedArchive, match=f"{len(content)} bytes"):
        Archive(path)


def test_a_changed_array_is_named(path):
    content = path.read_bytes()
    where = content.index(ARRAYS["/mlp/linear_0.W"].tobytes())
    path.write_bytes(content[:where] + b"\x01" + content[where + 1 :])

    with Archive(path) as archive:
        with pytest.raises(DamagedArchive, match="member '/mlp/linear_0.W.npy'.*earlier"):
            archive["/mlp/linear_0.W"]
        with pytest.raises(DamagedArchive, match="linear_0"):
            archive.verify()
        numpy.testing.assert_array_equal(archive["scalar"], 2.5)


def test_a_member_that_someone_replaced_is_noticed(path, tmp_path):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            target.writestr(name, b"[]" if name == "log.json" else source.read(name))

    with Archive(other) as archive, pytest.raises(DamagedArchive, match="'log.json' is not what"):
        archive.member("log.json")


def test_a_missing_member_is_noticed_when_the_file_is_opened(path, tmp_path):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            if name != "log.json":
                target.writestr(name, source.read(name))

    with pytest.raises(DamagedArchive, match=r"lacks log\.json"):
        Archive(other)


def foreign_text(path):
    path.write_text("epochs: 10\n")


def foreign_tar(path):
    with tarfile.open(path, "w") as file:
        file.addfile(tarfile.TarInfo("_pkl"), io.BytesIO())


def foreign_zip(path):
    with path.open("wb") as file:
        numpy.savez(file, a=numpy.zeros(3))


def foreign_manifest(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", "[]")


def newer_format(path):
    manifest = {"format": {"name": "firebrick archive", "version": 99}, "members": {}}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", json.dumps(manifest))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (foreign_text, "it begins with b'epochs: 10"),
        (foreign_tar, "tar archive, as Blocks wrote.*load_parameters"),
        (foreign_zip, "not one of ours: it has no 'manifest.json'"),
        (foreign_manifest, "'manifest.json' of another kind"),
        (newer_format, "'firebrick archive' 99; .* up to 1. Read it with a newer one"),
    ],
)
def test_a_foreign_file_is_one_error_that_says_what_it_is(tmp_path, write, words):
    path = tmp_path / "file"
    write(path)

    with pytest.raises(ForeignFile, match=words):
        Archive(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    (tmp_path / "training.zip").touch()
    (tmp_path / "training.txt").touch()

    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*trainig.zip. Did .*'training.z"):
        Archive(tmp_path / "trainig.zip")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*x\.npz\. There is none in its"):
        Archive(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint .*There is no folder .*nowhere"):
        Archive(tmp_path / "nowhere" / "training.zip")


def test_a_full_disk_is_an_error_and_the_previous_archive_still_loads(tmp_path):
    path = tmp_path / "small"
    small_archive(path)
    script = (
        "import resource, signal, sys, numpy\n"
        "from bricks.archive import ArchiveWriter\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with ArchiveWriter(sys.argv[1]) as writer:\n"
        "    writer.add_array('a', numpy.zeros(1_000_000))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )

    assert run.returncode == 1
    assert "OSError: [Errno 27] File too large" in run.stderr
    assert read_whole(path)[1] == b'{"a": 1}'
    assert os.listdir(tmp_path) == ["small"]
