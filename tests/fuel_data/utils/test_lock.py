import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_data.utils import lock

HOLDER = (
    "import sys; from fuel_data.utils.lock import take_lock; "
    "take_lock(sys.argv[1], shared=sys.argv[2] == 'shared'); print('held', flush=True); "
    "sys.stdin.read()"
)


@pytest.fixture
def hold(tmp_path):
    """Start processes that hold a lock until they are killed."""
    started = []

    def start(kind):
        arguments = [sys.executable, "-c", HOLDER, str(tmp_path / "lock"), kind]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_lock_keeps_others_out_until_its_process_is_killed(tmp_path, hold):
    holder = hold("alone")
    assert lock.take_lock(tmp_path / "lock", wait=False) is None
    assert lock.take_lock(tmp_path / "lock", shared=True, wait=False) is None

    holder.send_signal(signal.SIGKILL)

    os.close(lock.take_lock(tmp_path / "lock"))


def test_sharers_let_each_other_in_and_nobody_else(tmp_path, hold):
    hold("shared")

    os.close(lock.take_lock(tmp_path / "lock", shared=True, wait=False))
    assert lock.take_lock(tmp_path / "lock", wait=False) is None


def test_a_lock_on_a_removed_file_does_not_count(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    flock, removed = lock.fcntl.flock, []

    def flock_after_removal(descriptor, operation):
        flock(descriptor, operation)
        if not removed:
            removed.append(os.unlink(path))

    monkeypatch.setattr(lock.fcntl, "flock", flock_after_removal)
    first = lock.take_lock(path)

    assert path.exists(), "the second try made it anew"
    assert lock.take_lock(path, wait=False) is None
    os.close(first)


def test_readers_and_writers_of_a_file(tmp_path):
    path = tmp_path / "data"
    lock.get_readlock(os.getpid(), path)
    lock.get_readlock(None, path)
    with lock.locked(tmp_path / "data.lock", shared=True):
        assert lock.take_lock(tmp_path / "data.lock", wait=False) is None
    lock.release_readlock(path)
    assert lock.take_lock(tmp_path / "data.lock", wait=False) is None
    lock.release_readlock(path)
    lock.get_writelock(path)
    assert lock.take_lock(tmp_path / "data.lock", shared=True, wait=False) is None
    lock.release_writelock(path)
    os.close(lock.take_lock(tmp_path / "data.lock", wait=False))


def test_the_lock_of_a_folder_counts_how_often_it_was_taken(tmp_path):
    for _ in range(2):
        lock.get_lock(tmp_path / "locks")
    lock.release_lock()
    assert lock.take_lock(tmp_path / "locks" / "lock", wait=False) is None
    lock.release_lock()
    os.close(lock.take_lock(tmp_path / "locks" / "lock", wait=False))


def test_another_folder_is_not_locked_by_the_lock_of_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lock.get_lock("first")
    refusal = f"holds the lock of {tmp_path}/first; release it before {tmp_path}/second.$"
    with pytest.raises(ValueError, match=f"^get_lock: this process {refusal}"):
        lock.get_lock(tmp_path / "second")
    assert not (tmp_path / "second").exists()
    lock.get_lock(tmp_path / "first")
    lock.release_lock()
    lock.release_lock()

    lock.get_lock(tmp_path / "second")

    assert lock.take_lock(tmp_path / "second" / "lock", wait=False) is None
    os.close(lock.take_lock(tmp_path / "first" / "lock", wait=False))
    lock.release_lock()


def test_giving_back_what_was_not_taken_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no lock of get_lock"):
        lock.release_lock()
    with pytest.raises(ValueError, match="no lock on '.*x' by get_writelock"):
        lock.release_writelock(tmp_path / "x")
    with pytest.raises(ValueError, match="no lock on '.*x' by get_readlock"):
        lock.release_readlock(tmp_path / "x")


FORKS = """
import os, sys
from fuel_data.utils import lock

path, folder = sys.argv[1:]
lock.get_writelock(path)
lock.get_lock(folder)
child_waits, end = os.pipe()
parent_waits, ready = os.pipe()
child = os.fork()
if child == 0:
    for give_back in (lambda: lock.release_writelock(path), lock.release_lock):
        try:
            give_back()
        except ValueError as error:
            print(str(error)[:20], flush=True)
    print(lock.take_lock(folder + "/lock", wait=False), flush=True)
    os.close(end)
    os.write(ready, b"x")
    os.read(child_waits, 1)
    os._exit(0)
os.read(parent_waits, 1)
lock.release_writelock(path)
lock.take_lock(path + ".lock", wait=False) or print("locked by the child")
lock.release_lock()
lock.take_lock(folder + "/lock", wait=False) or print("locked by the child")
os.close(end)
os.waitpid(child, 0)
"""


def test_a_forked_child_holds_no_lock_of_its_parent(tmp_path):
    arguments = [sys.executable, "-c", FORKS, str(tmp_path / "data"), str(tmp_path / "locks")]
    environment = {**os.environ, "PYTHONPATH": str(Path(lock.__file__).parents[2])}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == "This process has no \nrelease_lock: this p\nNone\n"
