import gc
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).with_name("support")))

from server_helpers import processes_naming, wait_until


@pytest.fixture(autouse=True)
def folder(monkeypatch):
    """Give the folder of this test's sockets, and see that no socket and no process remains."""
    path = Path(tempfile.mkdtemp(prefix="ft-", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path / "run"))
    monkeypatch.delenv("FUEL_SERVER_TOKEN", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield path
    if list(path.glob("fuel-*")):
        gc.collect()
    wait_until(lambda: not processes_naming(str(path)))
    sockets = [place for place in path.rglob("*") if place.is_socket()]
    folders = list(path.glob("fuel-*"))
    shutil.rmtree(path)
    assert sockets == []
    assert folders == []
