import functools
import http.server
import sys
import threading

import pytest

from fuel_data.commands.download import main
from fuel_data.downloaders import all_downloaders

DOWNLOADERS = '''
from fuel_data.downloaders.base import default_downloader


def fill_toy(subparser):
    subparser.add_argument("--port", type=int)
    return fetch


def fetch(directory, clear, port):
    return default_downloader(directory, [f"http://127.0.0.1:{port}/toy"], [None], clear=clear)


all_downloaders = (("toy", fill_toy),)
'''


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


@pytest.mark.parametrize("args", [[], ["minst"], ["mnist", "--unknown"]])
def test_a_wrong_call_ends_with_status_two(args, capsys):
    with pytest.raises(SystemExit) as ended:
        main(args)

    assert ended.value.code == 2
    assert "usage: fuel-download" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "fill_subparser"), all_downloaders)
def test_every_file_of_a_data_set_has_several_addresses_and_a_digest(name, fill_subparser):
    defaults = {}

    class Parser:
        def set_defaults(self, **kwargs):
            defaults.update(kwargs)

    fill_subparser(Parser())

    assert len(defaults["urls"]) == len(defaults["filenames"]) == len(set(defaults["digests"])) == 4
    for urls, filename, digest in zip(
        defaults["urls"], defaults["filenames"], defaults["digests"], strict=True
    ):
        assert len(urls) >= 3 and all(url.endswith("/" + filename) for url in urls)
        assert len(digest) == 64


def test_a_file_that_was_never_there_is_not_said_to_be_removed(port, tmp_path, capsys):
    assert main(["toy", "-d", str(tmp_path / "data"), "--port", port, "--clear"]) == 0

    assert capsys.readouterr().out == "Nothing to remove.\n"
