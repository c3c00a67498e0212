import gzip
import tarfile

import pytest

from fuel_data.utils.formats import open_, tar_open


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_text_is_written_and_read_as_utf8_unless_told_otherwise(tmp_path, name):
    with open_(tmp_path / name, "w") as file:
        file.write("Zwölf\n")
    with open_(tmp_path / name) as file:
        assert file.read() == "Zwölf\n"
    with open_(tmp_path / name, encoding="latin-1") as file:
        assert file.read() == "ZwÃ¶lf\n"


def test_bytes_of_a_gz_file_are_unpacked(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"\x00\xff"))

    with open_(tmp_path / "x.gz", "rb") as file:
        assert file.read() == b"\x00\xff"


def test_a_tar_archive_is_opened_by_path_or_file_and_never_extracts_outside(tmp_path):
    (tmp_path / "inside").write_text("text")
    path = tmp_path / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "inside", arcname="../outside")

    with tar_open(path) as archive:
        assert archive.getnames() == ["../outside"]
        with pytest.raises(tarfile.OutsideDestinationError):
            archive.extractall(tmp_path / "target")
    with open(path, "rb") as file, tar_open(file) as archive:
        assert archive.getnames() == ["../outside"]
