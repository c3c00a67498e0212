import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.datasets import H5PYDataset, hdf5_files
from fuel_data.datasets.hdf5_files import open_file
from fuel_data.datasets.hdf5_heaps import check_heaps

VALUES = numpy.arange(4000 * 4, dtype="int32").reshape(4000, 4)


def write(path, values=VALUES, **options):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, **options)
        file.attrs["split"] = H5PYDataset.create_split_array({"train": {"x": (0, len(values))}})
    return path


LOCK = """
import sys, h5py
with h5py.File(sys.argv[1], "r+"):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_file_that_another_process_writes_is_refused_in_words(tmp_path):
    path = write(tmp_path / "x.hdf5")
    writer = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    writer.stdout.readline()
    try:
        with pytest.raises(OSError, match="Another process has it open for writing: close it the"):
            H5PYDataset(path, ("train",))
    finally:
        writer.communicate()
    assert H5PYDataset(path, ("train",)).num_examples == 4000


def test_a_file_system_without_locks_is_read_without(tmp_path, monkeypatch, caplog):
    path = write(tmp_path / "x.hdf5")
    original = h5py.File

    def without_locks(*arguments, locking, **options):
        if locking is not False:
            raise OSError("unable to lock file, errno = 37, error message = 'No locks available'")
        return original(*arguments, locking=locking, **options)

    monkeypatch.setattr(hdf5_files.h5py, "File", without_locks)

    with caplog.at_level(logging.WARNING), open_file(path) as file:
        assert len(file["x"]) == 4000
    assert "file system without locks; it is read without" in caplog.text


def test_a_file_that_nobody_may_write_is_read_and_nothing_written_beside_it(tmp_path):
    path = write(tmp_path / "x.hdf5", chunks=(100, 4), compression="gzip")
    os.chmod(path, 0o444)
    os.chmod(tmp_path, 0o555)
    before = os.stat(path)

    with H5PYDataset(path, ("train",)) as dataset:
        assert_array_equal(dataset.get_data(None, [3999, 1])[0], VALUES[[3999, 1]])

    os.chmod(tmp_path, 0o755)
    assert os.listdir(tmp_path) == ["x.hdf5"]
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("cut", [0, 7, 100, 3000])
def test_a_file_that_is_cut_short_is_named(tmp_path, cut):
    path = write(tmp_path / "x.hdf5")
    os.truncate(path, cut)

    with pytest.raises(OSError, match="x.hdf5 cannot be opened as an HDF5 file"):
        H5PYDataset(path, ("train",))


WITHOUT_PLUGIN = """
import sys
sys.modules["hdf5plugin"] = None
from fuel_data.datasets import H5PYDataset
try:
    H5PYDataset(sys.argv[1], ("train",))
except ValueError as error:
    print(error)
"""


def test_a_filter_that_is_not_there_is_named_with_the_extra(tmp_path):
    import hdf5plugin

    path = write(tmp_path / "x.hdf5", chunks=(100, 4), **hdf5plugin.Zstd())
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PLUGIN, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "/x is compressed by Zstandard (number 32015)" in done.stdout
    assert "pip install hdf5plugin" in done.stdout


def test_threads_share_a_data_set_that_is_opened_and_closed_meanwhile(tmp_path):
    path = write(tmp_path / "x.hdf5", chunks=(100, 4), compression="gzip")
    dataset = H5PYDataset(path, ("train",), cache_bytes=4 * 1600)
    wrong = []

    def read(seed):
        draw = numpy.random.default_rng(seed)
        try:
            for _ in range(40):
                with dataset:
                    indices = draw.integers(0, 4000, 20)
                    if not numpy.array_equal(dataset.get_data(None, indices)[0], VALUES[indices]):
                        wrong.append(seed)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


CHILDREN = """
import multiprocessing, os, sys, threading
from fuel_data.datasets import H5PYDataset

def read(dataset):
    print(dataset.get_data(None, [3999, 0])[0].tolist(), flush=True)

def hold(lock, held, done):
    with lock:
        held.set()
        done.wait()

if __name__ == "__main__":
    dataset = H5PYDataset(sys.argv[1], ("train",))
    dataset.open()
    held, done = threading.Event(), threading.Event()
    holder = threading.Thread(target=hold, args=(dataset._shared.lock, held, done))
    holder.start()
    held.wait()
    for method in ("fork", "spawn"):
        child = multiprocessing.get_context(method).Process(target=read, args=(dataset,))
        child.start()
        child.join(20)
        child.kill()
    done.set()
    holder.join()
    read(dataset)
"""


def test_forked_and_spawned_children_read_whatever_threads_of_the_parent_do(tmp_path):
    path = write(tmp_path / "x.hdf5", chunks=(100, 4), compression="gzip")
    (tmp_path / "children.py").write_text(CHILDREN)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "children.py"), str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        timeout=60,
        check=True,
    )

    assert done.stdout.splitlines() == [str(VALUES[[3999, 0]].tolist())] * 3


def changed_in_place(path):
    with h5py.File(path, "r+") as file:
        file["x"][17] = -1


def test_a_value_that_changed_since_the_checkpoint_is_refused_with_the_times(tmp_path):
    path = write(tmp_path / "x.hdf5")
    os.utime(path, (10**9, 10**9))
    saved = pickle.dumps(H5PYDataset(path, ("train",)))
    changed_in_place(path)

    with pytest.raises(ValueError, match="changed since it.*content was .*written was 2001-"):
        pickle.loads(saved).get_data(None, [0])


def test_a_changed_file_that_was_found_elsewhere_is_named_with_where_it_was(tmp_path, monkeypatch):
    path = write(tmp_path / "x.hdf5")
    saved = pickle.dumps(H5PYDataset(path, ("train",)))
    (tmp_path / "found").mkdir()
    os.rename(path, tmp_path / "found" / "x.hdf5")
    changed_in_place(tmp_path / "found" / "x.hdf5")
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path / "found"))

    with pytest.raises(ValueError, match="found/x.hdf5 has changed .*was .*0/x.hdf5 then"):
        pickle.loads(saved).get_data(None, [0])


def test_a_copy_with_another_time_is_the_same_file(tmp_path, caplog):
    values = numpy.zeros((3, 2**21), "uint8")
    path = write(tmp_path / "x.hdf5", values)
    saved = pickle.dumps(H5PYDataset(path, ("train",)))
    shutil.copyfile(path, tmp_path / "copy")
    os.replace(tmp_path / "copy", path)
    os.utime(path, (10**9, 10**9))

    with caplog.at_level(logging.WARNING):
        assert_array_equal(pickle.loads(saved).get_data(None, 2)[0], values[2])
    assert "was written again: 2001-09-09" in caplog.text


def test_values_are_checked_against_their_digests(tmp_path):
    with new_hdf5_file(tmp_path / "x.hdf5") as file:
        fill_hdf5_file(file, [("train", "x", VALUES)])
    assert H5PYDataset(tmp_path / "x.hdf5", ("train",)).num_examples == 4000
    changed_in_place(tmp_path / "x.hdf5")

    with pytest.raises(OSError, match="x.hdf5 is damaged: source 'x' cannot be what was written"):
        H5PYDataset(tmp_path / "x.hdf5", ("train",))
    with h5py.File(tmp_path / "x.hdf5", "r+") as file:
        del file.attrs["digests"]
    assert H5PYDataset(tmp_path / "x.hdf5", ("train",)).get_data(None, 17)[0].tolist() == [-1] * 4


def test_large_sources_are_checked_on_request(tmp_path, monkeypatch):
    with new_hdf5_file(tmp_path / "x.hdf5") as file:
        fill_hdf5_file(file, [("train", "x", VALUES)])
    changed_in_place(tmp_path / "x.hdf5")
    monkeypatch.setattr("fuel_data.datasets.hdf5.CHECKED_BYTES", 1000)
    dataset = H5PYDataset(tmp_path / "x.hdf5", ("train",))

    with pytest.raises(OSError, match="source 'x' cannot be what was written"):
        dataset.verify()


def test_a_heap_without_end_is_refused_before_hdf5_reads_it(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["words"] = ["one", "two"]
    content = bytearray((tmp_path / "x.hdf5").read_bytes())
    check_heaps(tmp_path / "x.hdf5")
    start = content.index(b"GCOL")
    # The first object now reaches to where a free space of no bytes seems to begin.
    content[start + 16 + 8] = 200
    (tmp_path / "x.hdf5").write_bytes(content)

    with pytest.raises(OSError, match=f"heap at byte {start:,} has no end"):
        open_file(tmp_path / "x.hdf5")


def test_what_reading_opened_after_unpickling_is_closed_by_close(tmp_path):
    path = write(tmp_path / "x.hdf5")
    dataset = pickle.loads(pickle.dumps(H5PYDataset(path, ("train",))))

    dataset.get_data(None, [0])
    dataset.get_data(None, [3, 1])
    opened = [name for name in os.listdir("/proc/self/fd") if is_file(name, path)]
    dataset.close(None)

    assert opened
    assert [name for name in os.listdir("/proc/self/fd") if is_file(name, path)] == []


def is_file(descriptor, path):
    return os.path.realpath(f"/proc/self/fd/{descriptor}") == os.path.realpath(path)
