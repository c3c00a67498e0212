import fcntl
import os
import stat
import subprocess
import sys
import time

import pytest

from fuel_data.utils import files
from fuel_data.utils.files import atomic_write, move_into_place, working_folder


def test_the_file_is_there_when_the_block_has_ended(tmp_path):
    path = tmp_path / "file"

    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()

    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    with pytest.raises(KeyError), atomic_write(path, "w") as file:
        file.write("new")
        raise KeyError

    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_file_can_be_read_back_before_it_is_renamed(tmp_path):
    with atomic_write(tmp_path / "file", "w+b") as file:
        file.write(b"abc")
        file.seek(1)
        assert file.read() == b"bc"


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path):
    path = tmp_path / "file"
    (tmp_path / "other").touch()
    with atomic_write(path) as file:
        file.write(b"1")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    path.chmod(0o640)
    with atomic_write(path) as file:
        file.write(b"2")
    assert path.stat().st_mode & 0o777 == 0o640


KILLED = """
import os, signal, sys
from fuel_data.utils.files import atomic_write

with atomic_write(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def make_older(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "file[1]"
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    (leftover,) = tmp_path.iterdir()
    make_older(leftover, 100)

    with atomic_write(path) as file:
        file.write(b"whole")

    assert os.listdir(tmp_path) == ["file[1]"]


def test_a_file_can_be_read_with_a_lock_from_the_moment_it_has_its_name(tmp_path, monkeypatch):
    path = tmp_path / "file"
    locked = []

    def look(written):
        if path.exists():
            with open(path) as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                locked.append(file.read())

    monkeypatch.setattr(files, "wait_for_disk", look)
    with atomic_write(path, "w") as file:
        file.write("whole")

    assert locked == ["whole"]


def test_what_another_writer_is_at_work_on_is_left_alone(tmp_path):
    path = tmp_path / "file"

    with atomic_write(path) as first:
        first.write(b"first")
        first.flush()
        (temporary,) = tmp_path.iterdir()
        make_older(temporary, 100)
        with atomic_write(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"

    assert path.read_bytes() == b"first"


def test_a_finished_file_is_moved_into_the_place_of_another(tmp_path):
    (tmp_path / "part").write_text("new")
    (tmp_path / "file").write_text("old")

    move_into_place(tmp_path / "part", tmp_path / "file")

    assert (tmp_path / "file").read_text() == "new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "large").mkdir()
    (tmp_path / "link").symlink_to("large/file")

    for content in (b"first", b"second"):
        with atomic_write(tmp_path / "link") as file:
            file.write(content)

    assert (tmp_path / "large" / "file").read_bytes() == b"second"
    assert os.readlink(tmp_path / "link") == "large/file"
    assert os.listdir(tmp_path / "large") == ["file"]


def test_a_device_a_pipe_or_a_folder_is_never_replaced_by_a_file(tmp_path):
    (tmp_path / "part").write_text("new")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("folder", "pipe", "link"):
        with (
            pytest.raises(FileExistsError, match=f"no file, choose another name: .*{name}'"),
            atomic_write(tmp_path / name),
        ):
            pass
        with pytest.raises(FileExistsError, match=f"no file, choose another name: .*{name}'"):
            move_into_place(tmp_path / "part", tmp_path / name)

    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "part", "pipe"]


def test_a_missing_folder_is_an_error(tmp_path):
    path = tmp_path / "nowhere" / "file"

    with pytest.raises(FileNotFoundError, match="nowhere"), atomic_write(path):
        pass


def test_a_full_disk_is_an_error_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    program = (
        "import resource, sys\n"
        "from fuel_data.utils.files import atomic_write\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    file.write(bytes(5000))\n"
    )

    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)

    assert "File too large" in done.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path, monkeypatch
):
    events = []
    sync, replace = os.fsync, os.replace

    def syncing(descriptor):
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def replacing(source, target):
        events.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", replacing)
    with atomic_write(tmp_path / "file") as file:
        file.write(b"whole")

    assert events == ["file", "rename", "folder"]


KILLED_IN_FOLDER = """
import os, signal, sys
from fuel_data.utils.files import working_folder

with working_folder(sys.argv[1], ".work-") as folder:
    (folder / "large").write_text("bytes")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_working_folder_of_a_killed_process_is_removed_by_the_next_one(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED_IN_FOLDER, tmp_path], check=False)
    (leftover,) = tmp_path.iterdir()
    make_older(leftover, 100)

    with working_folder(tmp_path, ".work-") as folder:
        assert list(tmp_path.iterdir()) == [folder]
        make_older(folder, 100)
        with working_folder(tmp_path, ".work-"):
            assert folder.is_dir()

    assert list(tmp_path.iterdir()) == []
