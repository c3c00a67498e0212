import logging
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy
import pytest

from fuel_data import config
from fuel_data.datasets import H5PYDataset
from fuel_data.utils import cache, disk

MAY_GO = 1


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A folder of originals; copies go to ``local`` beside it, however full the disk is."""
    monkeypatch.setenv("FUEL_LOCAL_DATA_PATH", str(tmp_path / "local"))
    monkeypatch.setenv("FUEL_MAX_DISK_USAGE", "1")
    monkeypatch.setattr(cache, "_in_use", {})
    folder = tmp_path / "slow"
    folder.mkdir()
    yield folder
    for descriptor in cache._in_use.values():
        os.close(descriptor)


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def read(path):
    with open(path) as file:
        return file.read()


def copies(slow):
    return sorted(path for path in (slow.parent / "local").rglob("*.*") if path.is_file())


def limit_disk(monkeypatch, slow, limit):
    """Let the disk hold copies of so many bytes in all."""

    def has_room(folder, num_bytes, max_disk_usage):
        return sum(path.stat().st_size for path in copies(slow)) + num_bytes <= limit

    monkeypatch.setattr(cache, "has_room", has_room)


def forget(path):
    os.close(cache._in_use.pop(os.path.dirname(path)))


def test_a_copy_is_equal_and_is_made_once(slow):
    original = write(slow / "a.bin", b"content")
    os.chmod(original, 0o640)
    os.utime(original, ns=(1, 2))

    copy = cache.cache_file(original)

    assert copy.startswith(str(slow.parent / "local")) and copy.endswith("/a.bin")
    assert read(copy) == "content"
    found = os.stat(copy)
    assert found.st_mtime_ns == 2 and stat.S_IMODE(found.st_mode) == 0o640
    assert cache.cache_file(original) == copy
    assert os.stat(copy).st_ino == found.st_ino


def test_a_copy_that_cannot_be_looked_at_is_not_kept_locked(slow, monkeypatch, caplog):
    original = write(slow / "a.bin", b"content")
    copy = cache.cache_file(original)
    forget(copy)
    fingerprint = cache.fingerprint

    def fail_for_copies(path):
        if path == copy:
            raise OSError(5, "Input/output error")
        return fingerprint(path)

    monkeypatch.setattr(cache, "fingerprint", fail_for_copies)

    assert cache.cache_file(original) == str(original)
    assert "Input/output error" in caplog.text
    descriptor = cache.take_lock(os.path.join(os.path.dirname(copy), "used"), wait=False)
    assert descriptor is not None, "this process holds no lock of it"
    os.close(descriptor)


def test_files_of_one_name_and_size_do_not_meet(slow):
    paths = [write(slow / folder / "x.bin", folder.encode()) for folder in ("one", "two")]
    for path in paths:
        os.utime(path, ns=(5, 5))

    found = [cache.cache_file(path) for path in paths]

    assert [read(path) for path in found] == ["one", "two"]


def test_equal_files_of_one_name_have_copies_of_their_own(slow):
    modes = (0o600, 0o644)
    for mode in modes:
        path = write(slow / oct(mode) / "x.bin", b"same")
        path.chmod(mode)
        os.utime(path, ns=(5, 5))

    found = [cache.cache_file(slow / oct(mode) / "x.bin") for mode in modes]

    assert [stat.S_IMODE(os.stat(path).st_mode) for path in found] == list(modes)


def test_a_file_that_has_changed_is_copied_anew_even_if_size_and_time_stay(slow):
    original = write(slow / "a.bin", b"old")
    os.utime(original, ns=(5, 5))
    old = cache.cache_file(original)
    write(original, b"new")
    os.utime(original, ns=(5, 5))

    new = cache.cache_file(original)

    assert (read(old), read(new)) == ("old", "new")


def test_a_copy_that_was_damaged_is_made_anew(slow):
    original = write(slow / "a.bin", b"content")
    copy = cache.cache_file(original)
    with open(copy, "wb") as file:
        file.write(b"cont")

    assert read(cache.cache_file(original)) == "content"


def test_without_the_setting_and_without_the_file_the_path_comes_back(slow, monkeypatch):
    assert cache.cache_file(slow / "missing") == str(slow / "missing")
    inside = write(slow.parent / "local" / "mine.bin", b"x")
    assert cache.cache_file(inside) == str(inside)
    original = write(slow / "a.bin", b"content")
    monkeypatch.setattr(config, "local_data_path", "")
    assert cache.cache_file(original) == str(original)


def test_the_original_is_read_if_it_cannot_be_copied(slow, monkeypatch, caplog):
    original = write(slow / "a.bin", b"content")
    write(slow.parent / "occupied", b"")
    monkeypatch.setattr(config, "local_data_path", str(slow.parent / "occupied"))

    assert cache.cache_file(original) == str(original)
    assert "a.bin is read where it is, not copied to" in caplog.text


def test_what_was_used_longest_ago_makes_room(slow, monkeypatch):
    limit_disk(monkeypatch, slow, limit=10)
    paths = [write(slow / f"{name}.bin", name.encode() * 4) for name in "abc"]
    first, second = (cache.cache_file(path) for path in paths[:2])
    os.utime(os.path.join(os.path.dirname(second), "used"), ns=(MAY_GO, MAY_GO))
    for path in (first, second):
        forget(path)

    third = cache.cache_file(paths[2])

    assert sorted(map(str, copies(slow))) == sorted([first, third])
    assert not os.path.exists(os.path.dirname(second)), "nothing of it is left"


def test_what_somebody_uses_stays_and_the_original_is_read(slow, monkeypatch, caplog):
    limit_disk(monkeypatch, slow, limit=6)
    first = cache.cache_file(write(slow / "a.bin", b"aaaa"))
    second = write(slow / "b.bin", b"bbbb")

    assert cache.cache_file(second) == str(second)

    assert "4 bytes more would fill its disk to over 100%, which the setting" in caplog.text
    assert "no copy is there that nobody uses" in caplog.text
    assert list(map(str, copies(slow))) == [first]
    forget(first)
    assert cache.cache_file(second) != str(second)


@pytest.mark.parametrize(("allowed", "is_copied"), [(None, False), ("0.92", True)])
def test_the_setting_says_how_full_the_disk_may_become(slow, monkeypatch, allowed, is_copied):
    monkeypatch.setattr(disk, "disk_usage", lambda path: (1000, 908))
    monkeypatch.delenv("FUEL_MAX_DISK_USAGE")
    if allowed is not None:
        monkeypatch.setenv("FUEL_MAX_DISK_USAGE", allowed)
    original = write(slow / "a.bin", b"content")

    assert (cache.cache_file(original) != str(original)) is is_copied


def test_a_full_disk_leaves_nothing_behind(slow, monkeypatch, caplog):
    original = write(slow / "a.bin", b"content")

    def fallocate(descriptor, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "posix_fallocate", fallocate)

    assert cache.cache_file(original) == str(original)
    assert "No space left on device" in caplog.text
    assert os.listdir(slow.parent / "local") == ["lock"]


@pytest.mark.parametrize("later", [b"changed while it was copied", b"CONTENT"])
def test_a_file_that_changes_while_it_is_copied_is_not_taken(slow, monkeypatch, caplog, later):
    original = write(slow / "a.bin", b"content")
    copyfileobj = cache.shutil.copyfileobj

    def copy_and_change(*arguments):
        copyfileobj(*arguments)
        write(original, later)

    monkeypatch.setattr(cache.shutil, "copyfileobj", copy_and_change)

    assert cache.cache_file(original) == str(original)
    assert "a.bin changed while it was copied" in caplog.text
    assert copies(slow) == []


PROGRAM = """
import os, shutil, signal, sys
from fuel_data.utils import cache
copied = shutil.copyfileobj
def copy(source, target, length):
    open(sys.argv[2] + "/copies." + str(os.getpid()), "w").close()
    if "killed" in sys.argv:
        target.write(source.read(3)); target.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    copied(source, target, length)
cache.shutil.copyfileobj = copy
with open(cache.cache_file(sys.argv[1])) as file: print(file.read(40))
"""


def start(slow, path, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(slow), *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_copy_that_was_killed_leaves_nothing_wrong(slow):
    original = write(slow / "a.bin", b"content")
    killed = start(slow, original, "killed")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    (part,) = copies(slow)
    assert part.name == "a.bin.part"

    copy = cache.cache_file(original)

    assert read(copy) == "content"
    assert list(map(str, copies(slow))) == [copy]


def test_room_is_made_of_what_a_killed_process_left(slow, monkeypatch):
    start(slow, write(slow / "a.bin", b"content"), "killed").communicate()
    limit_disk(monkeypatch, slow, limit=8)

    copy = cache.cache_file(write(slow / "b.bin", b"another"))

    assert list(map(str, copies(slow))) == [copy]


def test_processes_that_want_one_file_copy_it_once(slow):
    original = write(slow / "a.bin", b"content" * 1_000_000)

    together = [start(slow, original) for _ in range(4)]
    outputs = [process.communicate()[0] for process in together]

    assert outputs == ["contentcontentcontentcontentcontentconte\n"] * 4
    assert len(list(slow.glob("copies.*"))) == 1


def test_copying_by_hand_is_whole_or_not_at_all(slow, monkeypatch):
    original = write(slow / "a.bin", b"content")
    target = slow.parent / "target.bin"

    cache.copy_from_server_to_local(original, target)

    assert target.read_bytes() == b"content"
    with pytest.raises(FileNotFoundError):
        cache.copy_from_server_to_local(slow / "missing", target)
    assert target.read_bytes() == b"content"
    assert sorted(os.listdir(slow.parent)) == ["slow", "target.bin"]


def test_threads_that_copy_to_one_place_do_not_meet(slow, monkeypatch):
    originals = [write(slow / f"{name}.bin", name.encode() * 1000) for name in "ab"]
    both_copy = threading.Barrier(2, timeout=60)
    copyfileobj = cache.shutil.copyfileobj

    def copy(source, target, length):
        both_copy.wait()
        target.write(source.read(500))
        target.flush()
        both_copy.wait()
        copyfileobj(source, target, length)

    monkeypatch.setattr(cache.shutil, "copyfileobj", copy)
    target = slow.parent / "target.bin"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(cache.copy_from_server_to_local, originals, [target] * 2))

    assert target.read_bytes() in (b"a" * 1000, b"b" * 1000)
    assert sorted(os.listdir(slow.parent)) == ["slow", "target.bin"]


def write_five(path):
    with h5py.File(path, "w") as file:
        file["x"] = numpy.arange(5)
        file.attrs["split"] = H5PYDataset.create_split_array({"train": {"x": (0, 5)}})


def test_hdf5_data_sets_are_read_from_the_copy(slow, caplog):
    caplog.set_level(logging.WARNING)
    path = slow / "five.hdf5"
    write_five(path)
    with H5PYDataset(path, ("train",)) as dataset:
        (copy,) = copies(slow)

        assert dataset._file().filename == str(copy)
        assert dataset.path == str(path)
        assert dataset.get_data(request=[4, 0])[0].tolist() == [4, 0]
    # The original is asked for again, and may have gone to another folder with its old time.
    assert H5PYDataset(path, ("train",)).identity() == dataset.identity()
    assert caplog.text == ""


def test_an_hdf5_file_that_refers_to_another_is_read_where_it_is(slow):
    write_five(slow / "five.hdf5")
    layout = h5py.VirtualLayout((5,), dtype="int64")
    layout[:] = h5py.VirtualSource("five.hdf5", "x", (5,))
    with h5py.File(slow / "virtual.hdf5", "w") as file:
        file.create_virtual_dataset("x", layout)
        file.attrs["split"] = H5PYDataset.create_split_array({"train": {"x": (0, 5)}})

    with H5PYDataset(slow / "virtual.hdf5", ("train",)) as dataset:
        assert dataset._file().filename == str(slow / "virtual.hdf5")
        assert dataset.get_data(request=slice(0, 5))[0].tolist() == [0, 1, 2, 3, 4]
