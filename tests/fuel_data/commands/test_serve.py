import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuel_data.commands.serve import main
from fuel_data.server import ServerDataStream
from fuel_data.server.server import Server

ROOT = str(Path(__file__).parents[3])
RECIPES = f"{ROOT}/tests/fuel_data/server/support/server_recipes.py"


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    """Forget the folders that recipes put on the import path."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Start the command as a process; it is ended by SIGTERM."""
    started = []
    monkeypatch.setenv("PYTHONPATH", ROOT)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "fuel_data.commands.serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def address_in(process):
    line = process.stdout.readline()
    match = re.fullmatch(r"fuel-server: serving \S+ at (\S+)\n", line)
    assert match, line
    return match[1]


def test_the_command_serves_a_recipe_with_its_arguments(command):
    process = command(f"{RECIPES}:counted", "--argument", "batch_size=5", "--argument", "seed=2")

    with ServerDataStream(address=address_in(process)) as stream:
        assert stream.num_batches == 2
        assert "seed=2" in stream._welcome["pipeline"]


def test_the_command_announces_its_address_in_a_file_when_clients_can_connect(command, tmp_path):
    ready = tmp_path / "ready"
    process = command(f"{RECIPES}:in_order", "--ready-file", str(ready), "--hwm", "3")
    address = address_in(process)

    with ServerDataStream(address=address) as stream:
        assert stream.num_batches == 5
        assert ready.read_text() == address


def test_a_server_and_its_client_find_each_other_without_a_home(command, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    process = command(f"{RECIPES}:in_order")
    assert address_in(process).startswith(f"ipc://{tmp_path}/fuel_data-")

    with ServerDataStream() as stream:
        assert stream.num_batches == 5


def test_the_command_ends_at_sigterm_and_leaves_nothing(command, tmp_path):
    process = command(f"{RECIPES}:in_order", "--address", "tcp://127.0.0.1:0")
    address_in(process)
    assert len(list(tmp_path.rglob("*.token"))) == 1

    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 0
    assert list(tmp_path.rglob("*.token")) == []


def test_a_server_is_ready_in_under_a_second_and_a_half(command):
    anywhere = ("--address", "tcp://127.0.0.1:0")
    command(f"{RECIPES}:in_order", *anywhere).stdout.readline()  # with warm caches
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        address_in(command(f"{RECIPES}:in_order", *anywhere))
        times.append(time.perf_counter() - begin)

    assert min(times) < 1.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.py:build"], "fuel-server: recipe: there is no file .*/missing.py"),
        ([f"{RECIPES}:countd"], "there is no function 'countd'. Did you mean 'counted'"),
        ([f"{RECIPES}:counted", "--argument", "3"], "--argument: expected NAME=VALUE, got '3'"),
        ([f"{RECIPES}:counted", "--argument", "sed=1"], "no argument 'sed'. Did you mean 'seed'"),
        ([f"{RECIPES}:counted", "--address", "tcp://*:1"], "not on this machine's loopback"),
        (
            [f"{RECIPES}:counted", "--address", "tcp://127.0.0.1:0", "--ready-file", "/no/file"],
            "'/no/file' could not be written: There is no folder '/no'. Choose another --ready-",
        ),
    ],
)
def test_an_error_of_the_user_is_one_line_and_status_2(
    arguments, words, capsys, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert main(arguments) == 2

    error = capsys.readouterr().err
    assert re.search(words, error)
    assert error.count("\n") == 1


def test_other_errors_while_it_serves_are_not_said_of_a_ready_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Server, "serve", lambda *_, **__: Path("missing.txt").read_text())

    with pytest.raises(FileNotFoundError, match="missing.txt"):
        main([f"{RECIPES}:counted"])


def test_an_error_in_the_code_of_a_recipe_is_shown_by_its_lines(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    recipe = tmp_path / "failing_recipes.py"
    recipe.write_text("def build():\n    return {}[1]\n")

    assert main([f"{recipe}:build"]) == 2

    error = capsys.readouterr().err
    assert error.startswith(
        f'fuel-server: the code of a recipe failed:\n  File "{recipe}", line 2, in build\n'
    )
    assert error.endswith("KeyError: 1\n")
    sys.modules.pop("failing_recipes")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--hwm", "0"], "argument --hwm: must be a whole number of at least 1; got '0'."),
        (["--hwm", "many"], "--hwm: must be a whole number of at least 1; got 'many'."),
        (["--heartbeat", "-1"], "must be a finite number of more than 0; got '-1'."),
        (["--heartbeat", "inf"], "must be a finite number of more than 0; got 'inf'."),
    ],
)
def test_numbers_that_make_no_sense_are_refused(option, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([f"{RECIPES}:counted", *option])

    assert words in capsys.readouterr().err


def test_a_busy_address_is_one_line_and_status_2(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Server("tcp://127.0.0.1:0") as server:
        assert main([f"{RECIPES}:counted", "--address", server.address]) == 2

    assert f"another process already listens at {server.address}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("[a, 2]", ["a", 2]),
        ("{a: 1}", {"a": 1}),
        ("train", "train"),
        ("2020-01-01", "2020-01-01"),
        ("a: b: c", "a: b: c"),
        ("", None),
    ],
)
def test_values_are_json_or_yaml_or_text(text, value, tmp_path):
    recipe = tmp_path / "echoing_recipes.py"
    recipe.write_text("def build(value):\n    raise SystemExit(repr(value))\n")

    with pytest.raises(SystemExit, match=re.escape(repr(value))):
        main([f"{recipe}:build", "--argument", f"value={text}"])
    sys.modules.pop("echoing_recipes")


def test_the_signal_handler_of_the_caller_is_put_back():
    before = signal.getsignal(signal.SIGTERM)

    main(["missing.py:build"])

    assert signal.getsignal(signal.SIGTERM) is before


def test_an_address_that_is_given_twice_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["x:y", "--address", "ipc:///a", "--address", "ipc:///b"])
    assert "argument --address: it is given twice" in capsys.readouterr().err
