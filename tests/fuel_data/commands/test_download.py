import functools
import http.server
import re
import resource
import sys
import threading

import pytest

from fuel_data.commands.download import main

DOWNLOADERS = """
from fuel_data.downloaders.base import default_downloader


def fill_toy(subparser):
    subparser.add_argument("--port", type=int)
    return fetch


def fetch(directory, clear, port):
    return default_downloader(directory, [f"http://127.0.0.1:{port}/toy"], [None], clear=clear)


all_downloaders = (("toy", fill_toy),)
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def port(tmp_path, monkeypatch):
    (tmp_path / "toy_downloaders.py").write_text(DOWNLOADERS)
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "toy").write_text("toy")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FUEL_EXTRA_DOWNLOADERS", "toy_downloaders")
    handler = functools.partial(Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield str(server.server_port)
        server.shutdown()
        thread.join()
    sys.modules.pop("toy_downloaders", None)


def test_files_are_fetched_and_cleared(port, tmp_path, capsys):
    arguments = ["toy", "-d", str(tmp_path / "data"), "--port", port]

    assert main(arguments) == 0
    assert (tmp_path / "data" / "toy").read_text() == "toy"
    assert capsys.readouterr().out == f"{tmp_path / 'data' / 'toy'}: 3 bytes\n"

    assert main([*arguments, "--clear"]) == 0
    assert list((tmp_path / "data").iterdir()) == []
    assert capsys.readouterr().out == f"{tmp_path / 'data' / 'toy'}: removed\n"


def test_what_cannot_be_fetched_is_an_error_with_the_address(port, tmp_path, capsys):
    (tmp_path / "served" / "toy").unlink()

    assert main(["toy", "-d", str(tmp_path / "data"), "--port", port]) == 1

    error = capsys.readouterr().err
    assert error.startswith("fuel-download toy: ")
    assert f"http://127.0.0.1:{port}/toy: the server answered 404" in error
    assert list((tmp_path / "data").iterdir()) == []


def test_on_a_full_disk_what_came_is_kept(port, tmp_path, capsys):
    (tmp_path / "served" / "toy").write_bytes(bytes(5000))
    folder = tmp_path / "data"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        assert main(["toy", "-d", str(folder), "--port", port]) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert capsys.readouterr().err == (
        f"fuel-download toy: '{folder}' could not be written: File too large. What has come is "
        "kept as NAME.part for the next time. Make room there, or choose another folder by -d.\n"
    )
    assert sorted(path.name for path in folder.iterdir()) == ["toy.part", "toy.part.from"]
    assert main(["toy", "-d", str(folder), "--port", port]) == 0
    assert (folder / "toy").read_bytes() == bytes(5000)


@pytest.mark.parametrize("args", [[], ["minst"], ["mnist", "--unknown"]])
def test_a_wrong_call_ends_with_status_two(args, capsys):
    with pytest.raises(SystemExit) as ended:
        main(args)

    assert ended.value.code == 2
    assert "usage: fuel-download" in capsys.readouterr().err


def files_of(command, directory):
    """Give what a downloader asks for: name of a file → its addresses, and its digest."""
    name, *arguments = command.split()
    asked = {}

    def ask(directory, urls, filenames, url_prefix=None, clear=False, digests=None):
        for file, addresses, digest in zip(
            filenames, urls, digests or [None] * len(urls), strict=True
        ):
            several = [addresses] if isinstance(addresses, str) else addresses
            asked[file] = (several or [f"{url_prefix}/{file}"], digest)
        return []

    with pytest.MonkeyPatch.context() as patch:
        for module in list(sys.modules):
            if module.startswith("fuel_data.downloaders."):
                patch.setattr(f"{module}.default_downloader", ask, raising=False)
        assert main([name, *arguments, "-d", str(directory)]) == 0
    return asked


@pytest.mark.parametrize(
    ("command", "num_files", "num_digests"),
    [
        ("binarized_mnist", 3, 3),
        ("caltech101_silhouettes 16", 1, 0),
        ("caltech101_silhouettes 28", 1, 0),
        ("celeba", 3, 3),
        ("cifar10", 1, 1),
        ("cifar100", 1, 1),
        ("dogs_vs_cats", 2, 0),
        ("fashion_mnist", 4, 4),
        ("ilsvrc2010 --url-prefix http://here", 6, 0),
        ("ilsvrc2012 --url-prefix http://here", 4, 3),
        ("mnist", 4, 4),
        ("svhn 1", 3, 0),
        ("svhn 2", 3, 3),
    ],
)
def test_every_file_of_a_data_set_has_addresses_and_the_published_digest(
    tmp_path, command, num_files, num_digests
):
    files = files_of(command, tmp_path)

    digests = [digest for _, digest in files.values() if digest is not None]
    assert len(files) == num_files and len(digests) == len(set(digests)) == num_digests
    assert all(re.fullmatch("[0-9a-f]{32}|[0-9a-f]{64}", digest) for digest in digests)
    for file, (addresses, _) in files.items():
        assert all(url.startswith(("http://", "https://")) for url in addresses)
        stem = file.removeprefix("dogs_vs_cats.")
        assert all(stem in url or "drive" in url for url in addresses)


def test_images_behind_an_account_need_an_address(tmp_path, capsys):
    assert main(["ilsvrc2012", "-d", str(tmp_path)]) == 1

    error = capsys.readouterr().err
    assert "ILSVRC2012_img_train.tar, ILSVRC2012_img_val.tar" in error
    assert "have no public address" in error and "by --url-prefix" in error


def test_a_file_that_was_never_there_is_not_said_to_be_removed(port, tmp_path, capsys):
    assert main(["toy", "-d", str(tmp_path / "data"), "--port", port, "--clear"]) == 0

    assert capsys.readouterr().out == "Nothing to remove.\n"


def test_a_folder_that_is_given_twice_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["mnist", "-d", "a", "--directory", "b"])
    assert "argument -d/--directory: it is given twice" in capsys.readouterr().err
