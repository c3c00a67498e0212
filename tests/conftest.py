"""What holds in every test: no settings, data or signals of the user, and nothing left behind."""

import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

# Programs that tests run in processes of their own.
collect_ignore = ["golden", "killed_runs", "scripts_of_blocks"]

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")


@pytest.fixture(scope="session", autouse=True)
def settings_of_nobody(tmp_path_factory):
    """Keep the settings, data and caches of whoever runs the tests out of them."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("FUEL_", "BRICKS_", "BLOCKS_")):
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        for kind in ("DATA_HOME", "CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR"):
            patch.delenv(f"XDG_{kind}", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def signals_of_a_terminal():
    """Let signals do what they do in a terminal: what nohup or & starts ignores some of them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def temporary_files_go(tmp_path_factory):
    """Remove what is left of temporary files: Aesara writes each function of its own as one."""
    # The folders of tests stay in the system's one, where pytest keeps the last of them.
    tmp_path_factory.getbasetemp()
    with (
        tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(tempfile, "tempdir", folder)
        yield


def _children() -> set[str]:
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        return set()
    children: set[str] = set()
    for task in tasks.iterdir():
        # A thread may end while its folder is looked at.
        with suppress(OSError):
            children.update((task / "children").read_text().split())
    return children


def _command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.fixture(scope="module", autouse=True)
def no_process_left_behind():
    """Fail the module whose tests leave a child process running."""
    before = _children()
    yield
    left = {pid: _command(pid) for pid in _children() - before}
    # Python starts its tracker of shared memory once, and it ends with this process.
    tracker = "from multiprocessing.resource_tracker import main"
    left = {pid: command for pid, command in left.items() if command and tracker not in command}
    assert not left, f"processes left behind: {left}"
