"""Downloads that go on, of files of which nobody has published a digest."""

import contextlib
import hashlib
import http.server
import json
import threading

import pytest

from fuel_data.downloaders.base import DownloadError, default_downloader, download_file
from fuel_data.utils.lock import locked

ELSEWHERE = '{"url": "http://other/file", "version": "\\"1\\""}'
OLD, NEW = b"old " * 1000, b"new " * 1200


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `content` as servers do that know If-Range; the test says what else."""

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/file")
            self.end_headers()
            return
        first = int(self.headers.get("Range", "bytes=0-")[6:-1])
        if self.headers.get("If-Range", server.version) != server.version:
            first = 0
        if first >= len(server.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = server.content[first:]
        self.send_response(206 if first else 200)
        if first:
            last = len(server.content) - 1
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(server.content)}")
        for name, value in {**server.headers, "Content-Length": str(len(body))}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else None
        self.wfile.write(body if cut is None else body[: max(0, cut - first)])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.content, server.asked, server.cuts = OLD, [], []
        server.version = '"1"'
        server.headers = {"ETag": '"1"'}
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(server, tmp_path):
    def fetch(*paths, rounds=1, sha256=None):
        urls = [server.url + path for path in paths or ("/file",)]
        download_file(urls, tmp_path / "file", sha256, rounds=rounds, wait_s=0)
        return (tmp_path / "file").read_bytes()

    return fetch


def stop_after(fetch, server, number):
    server.cuts = [number]
    with pytest.raises(DownloadError, match=f"the answer ended after {number:,} of "):
        fetch()


def test_a_file_that_is_the_same_is_gone_on_with(fetch, server, tmp_path):
    stop_after(fetch, server, 1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.part", "file.part.from"]

    assert fetch() == OLD

    assert [asked for _, asked in server.asked] == [None, "bytes=1000-"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "file.sha256"]


def test_a_file_that_has_changed_at_the_other_end_begins_again(fetch, server):
    stop_after(fetch, server, 1000)
    server.content, server.version, server.headers = NEW, '"2"', {"ETag": '"2"'}

    assert fetch() == NEW


def test_a_file_that_changes_between_two_tries_is_never_mixed(fetch, server, monkeypatch):
    server.cuts = [1000]
    answer = Handler.do_GET

    def change_then_answer(self):
        answer(self)
        server.content, server.version, server.headers = NEW, '"2"', {"ETag": '"2"'}

    monkeypatch.setattr(Handler, "do_GET", change_then_answer)

    assert fetch(rounds=2) == NEW


def test_a_date_says_it_where_there_is_no_strong_tag(fetch, server, tmp_path):
    server.version = "Mon, 01 Jan 2024 00:00:00 GMT"
    server.headers = {"ETag": 'W/"1"', "Last-Modified": server.version}
    stop_after(fetch, server, 1000)

    assert json.loads((tmp_path / "file.part.from").read_text())["version"] == server.version
    assert fetch() == OLD
    assert server.asked[-1] == ("/file", "bytes=1000-")


@pytest.mark.parametrize("origin", [None, "no json", ELSEWHERE])
def test_what_came_from_elsewhere_is_not_gone_on_with(fetch, server, tmp_path, origin):
    (tmp_path / "file.part").write_bytes(b"y" * 1000)
    if origin is not None:
        (tmp_path / "file.part.from").write_text(origin)

    assert fetch() == OLD
    assert server.asked == [("/file", None)]


def test_without_a_version_it_begins_again_and_another_address_is_never_mixed_in(fetch, server):
    server.headers = {}
    stop_after(fetch, server, 1000)
    server.cuts = [1000]

    assert fetch("/file", "/other") == OLD
    assert [asked for _, asked in server.asked] == [None, None, None]


def test_a_part_that_was_complete_only_gets_its_name(fetch, server, tmp_path):
    stop_after(fetch, server, 1000)
    (tmp_path / "file.part").write_bytes(OLD)

    assert fetch() == OLD
    assert server.asked[-1] == ("/file", f"bytes={len(OLD)}-")


def test_a_part_that_is_longer_than_the_file_begins_again(fetch, server, tmp_path):
    stop_after(fetch, server, 1000)
    (tmp_path / "file.part").write_bytes(OLD + b"more")

    with pytest.raises(DownloadError, match="the file is shorter than what had come"):
        fetch()
    assert list(tmp_path.iterdir()) == []
    assert fetch(rounds=2) == OLD


def test_a_page_in_place_of_the_file_is_refused(fetch, server, tmp_path):
    server.headers = {"Content-Type": "text/html; charset=utf-8"}

    with pytest.raises(DownloadError, match=r"answered with a page to read \(text/html\) in place"):
        fetch()
    assert list(tmp_path.iterdir()) == []

    download_file([server.url + "/file"], tmp_path / "index.html")
    assert (tmp_path / "index.html").read_bytes() == OLD


def test_an_address_may_lead_to_another(fetch, server):
    assert fetch("/moved") == OLD
    assert [path for path, _ in server.asked] == ["/moved", "/file"]


def test_a_file_of_unknown_length_is_taken_with_a_warning(fetch, server, caplog, tmp_path):
    server.headers = {"Content-Length": None}
    real = Handler.send_header

    def without_length(self, name, value):
        if name != "Content-Length":
            real(self, name, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handler, "send_header", without_length)
        assert fetch() == OLD
    words = "file: the server did not say how long it is, so whether it is whole is not known"
    assert words in caplog.messages

    caplog.clear()
    (tmp_path / "file").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handler, "send_header", without_length)
        fetch(sha256=hashlib.sha256(OLD).hexdigest())
    assert caplog.messages == []


def test_a_second_process_waits_and_finds_the_file(fetch, server, tmp_path, caplog):
    with contextlib.ExitStack() as first:
        first.enter_context(locked(tmp_path / "file.part"))
        second = threading.Thread(target=fetch)
        second.start()
        while not caplog.messages:
            second.join(0.01)
        (tmp_path / "file").write_bytes(b"fetched by the first")
    second.join(10)

    assert not second.is_alive()
    assert caplog.messages == [f"{tmp_path}/file: another process is fetching it; waiting"]
    assert (tmp_path / "file").read_bytes() == b"fetched by the first" and server.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_clearing_removes_what_there_is_of_a_download(fetch, server, tmp_path):
    stop_after(fetch, server, 1000)

    default_downloader(tmp_path, [f"{server.url}/file"], ["file"], clear=True)

    assert list(tmp_path.iterdir()) == []
