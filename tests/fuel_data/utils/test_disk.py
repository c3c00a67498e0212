import os
import shutil
import stat
from types import SimpleNamespace

import pytest

from fuel_data.utils import disk


def test_usage_is_that_of_the_disk(tmp_path):
    total, used = disk.disk_usage(tmp_path)

    assert 0 < used <= total <= shutil.disk_usage(tmp_path).total


def test_what_is_kept_for_the_administrator_is_neither_used_nor_free(tmp_path, monkeypatch):
    blocks = SimpleNamespace(f_frsize=4, f_blocks=100, f_bfree=60, f_bavail=35)
    monkeypatch.setattr(os, "statvfs", lambda path: blocks)

    assert disk.disk_usage(tmp_path) == (4 * 75, 4 * 40)


def test_a_folder_is_made_with_those_above_it_even_if_its_name_is_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    disk.safe_mkdir("x")
    disk.safe_mkdir("a/b", force_perm=0o711)
    disk.safe_mkdir("a/b")

    assert (tmp_path / "x").is_dir()
    for name in ("a", "a/b"):
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o711


@pytest.mark.parametrize(("used", "enough"), [(85, True), (91, False)])
def test_a_file_fits_if_the_disk_stays_below_the_limit(tmp_path, monkeypatch, used, enough):
    (tmp_path / "five").write_bytes(b"12345")
    monkeypatch.setattr(disk, "disk_usage", lambda path: (100, used))

    assert disk.check_enough_space(tmp_path, tmp_path / "five", tmp_path / "new") is enough
    assert disk.check_enough_space(tmp_path, tmp_path / "five", "x", max_disk_usage=0.96)
