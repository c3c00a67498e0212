import os
import resource
import stat
import tempfile

import pytest

from fuel_data.server.addresses import (
    TokenFile,
    check_address,
    default_address,
    given_token,
    hold_folder,
    make_ipc_folder,
    refuse_busy_path,
)
from fuel_data.server.errors import AddressError, ServerError


@pytest.mark.parametrize(
    ("address", "checked"),
    [
        ("ipc:///tmp/a", "ipc:///tmp/a"),
        ("tcp://localhost:5557", "tcp://127.0.0.1:5557"),
        ("tcp://localhost:65535", "tcp://127.0.0.1:65535"),
        ("tcp://127.0.1.1:0", "tcp://127.0.1.1:0"),
    ],
)
def test_addresses_on_this_machine_are_taken(address, checked):
    assert check_address(address) == checked


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://*:5557", r"not on this machine's loopback.*ssh -L 5557:127.0.0.1:5557 HOST"),
        ("tcp://0.0.0.0:5557", "not on this machine's loopback"),
        ("tcp://127.0.0.1.example.org:1", "not on this machine's loopback"),
        ("tcp://example.org:1", "not on this machine's loopback"),
        ("tcp://127.0.0.999:1", "not on this machine's loopback"),
        ("tcp://localhost:65536", "the port of 'tcp://localhost:65536' must be at most 65535"),
        ("ipc://" + "a" * 104, "has 104 bytes, a socket's may have 103"),
        ("ipc://@abstract", "expected 'ipc://PATH'"),
        ("ipc://", "expected 'ipc://PATH'"),
        ("127.0.0.1:5557", "expected 'ipc://PATH' or 'tcp://127.0.0.1:PORT'"),
    ],
)
def test_other_addresses_are_refused_in_words(address, words):
    with pytest.raises(AddressError, match=words):
        check_address(address)


def test_the_default_folder_is_for_the_user_only_and_short(monkeypatch, tmp_path):
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    folder = make_ipc_folder()
    mode = stat.S_IMODE(folder.stat().st_mode)
    folder.rmdir()

    assert mode == 0o700
    assert folder.parent.as_posix() == "/tmp"


def test_folders_that_dead_servers_left_are_removed_and_those_of_living_ones_are_not():
    left, held, new = (make_ipc_folder() for _ in range(3))
    (left / "s").touch()
    descriptor = hold_folder(held)
    for folder in (left, held):
        os.utime(folder, (0, 0))

    fresh = make_ipc_folder()
    there = [folder.is_dir() for folder in (left, held, new, fresh)]
    os.close(descriptor)
    for folder in (held, new, fresh):
        folder.rmdir()

    assert there == [False, True, True, True]


def test_a_default_folder_that_others_can_enter_is_closed_to_them(folder):
    (folder / "run" / "fuel_data").mkdir(mode=0o755, parents=True)

    address = default_address()

    assert address == f"ipc://{folder}/run/fuel_data/server"
    assert stat.S_IMODE((folder / "run" / "fuel_data").stat().st_mode) == 0o700


def test_without_a_home_the_default_folder_is_beside_temporary_files(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = tmp_path / f"fuel_data-{os.getuid()}"

    assert default_address() == default_address() == f"ipc://{own}/server"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700

    own.rmdir()
    (tmp_path / "elsewhere").mkdir()
    own.symlink_to(tmp_path / "elsewhere")
    words = f"/dev/null/.cache/fuel_data cannot be made .Not a.*, nor {own} .it is some.*--address"
    with pytest.raises(AddressError, match=words):
        default_address()


def test_a_path_that_is_no_socket_is_not_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")

    with pytest.raises(ServerError, match="thesis.txt exists and is no socket"):
        refuse_busy_path(f"ipc://{tmp_path}/thesis.txt")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ServerError, match="folder of 'ipc://.*/no/s' does not exist"):
        refuse_busy_path(f"ipc://{tmp_path}/no/s")


def test_a_token_is_readable_by_the_user_only():
    file = TokenFile("tcp://127.0.0.1:5557")

    file.write("secret")

    assert file.path.name == "5557.token"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.read() == "secret"
    file.remove()
    assert file.read() is None


def test_a_token_for_which_there_is_no_room_is_an_error_in_words():
    file = TokenFile("tcp://127.0.0.1:5557")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, before[1]))
    try:
        with pytest.raises(ServerError, match="5557.token could not be .* or set FUEL_SERVER_TOK"):
            file.write("secret")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    file.remove()


def test_a_folder_that_cannot_be_made_is_an_error_in_words(monkeypatch):
    # Not one for this test, which may be too deep, so that another is taken.
    monkeypatch.setattr(tempfile, "tempdir", os.path.join(tempfile.gettempdir(), "gone"))

    with pytest.raises(ServerError, match=r"no folder .* \(No such file or directory\). .* TMPDIR"):
        make_ipc_folder()


def test_an_empty_token_is_none_and_that_of_the_environment_stands_in(monkeypatch):
    monkeypatch.setenv("FUEL_SERVER_TOKEN", "")
    assert given_token(None) is None
    assert given_token("") is None
    monkeypatch.setenv("FUEL_SERVER_TOKEN", "secret")
    assert given_token("") == given_token(None) == "secret"
    assert given_token("other") == "other"
