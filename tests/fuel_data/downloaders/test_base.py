import gzip
import hashlib
import http.server
import io
import socket
import threading

import pytest
import requests

from fuel_data.downloaders.base import (
    DownloadError,
    default_downloader,
    download,
    download_file,
    filename_from_url,
    fill_from_mirrors,
)
from fuel_data.exceptions import NeedURLPrefix

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the script of the test: a list of what to do with the requests to come."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        behaviour = self.server.script.pop(0) if self.server.script else "serve"
        start = 0
        if self.headers.get("Range") and behaviour != "ignore range":
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if isinstance(behaviour, int):
            self.send_error(behaviour)
        elif start >= len(CONTENT):
            self.send_error(416)
        else:
            self.answer(behaviour, start)

    def answer(self, behaviour, start):
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        if start:
            first = 0 if behaviour == "wrong range" else start
            self.send_header("Content-Range", f"bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}")
        self.send_header("Content-Length", str(len(body)))
        if self.server.disposition:
            self.send_header("Content-Disposition", self.server.disposition)
        self.end_headers()
        if behaviour == "cut":
            body = body[: len(body) // 2]
        elif behaviour == "damage":
            body = b"x" + body[1:]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.script, server.asked, server.disposition = [], [], None
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(server, tmp_path):
    def fetch(*paths, sha256=SHA256, rounds=3):
        urls = [server.url + path for path in paths or ("/file",)]
        download_file(urls, tmp_path / "file", sha256, rounds=rounds, wait_s=0)

    return fetch


def test_the_file_is_fetched(fetch, tmp_path):
    fetch()

    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_there_and_right_is_not_fetched_again(server, fetch, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)

    fetch()

    assert server.asked == []


def test_a_file_that_is_there_and_wrong_is_fetched_again(fetch, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT[:-1])

    fetch()

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_page_that_says_not_found_is_an_error_and_never_the_file(server, fetch, tmp_path):
    server.script = [404]

    with pytest.raises(DownloadError, match="file could not be fetched:\n .*/file: .* 404 Not Fo"):
        fetch()

    assert list(tmp_path.iterdir()) == []
    assert len(server.asked) == 1


def test_the_next_address_is_tried(server, fetch, tmp_path):
    server.script = [404, "serve"]

    fetch("/one", "/two")

    assert server.asked == [("/one", None), ("/two", None)]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_is_busy_is_tried_again(server, fetch, tmp_path):
    server.script = [503, 429]

    fetch()

    assert len(server.asked) == 3
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_an_answer_that_is_cut_short_is_gone_on_with(server, fetch, tmp_path):
    server.script = ["cut", "cut"]

    fetch()

    assert [asked[1] for asked in server.asked] == [None, "bytes=5120-", "bytes=7680-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_what_a_stopped_download_has_left_is_gone_on_with(server, fetch, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])

    fetch()

    assert server.asked == [("/file", "bytes=1000-")]
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_part_that_was_complete_only_gets_its_name(server, fetch, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)

    fetch()

    assert len(server.asked) == 1
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_part_of_another_file_is_thrown_away(server, fetch, tmp_path):
    (tmp_path / "file.part").write_bytes(b"y" * 1000)

    fetch()

    assert [asked[1] for asked in server.asked] == ["bytes=1000-", None]
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("behaviour", ["ignore range", "wrong range"])
def test_a_server_without_ranges_is_read_from_the_start(server, fetch, tmp_path, behaviour):
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    server.script = [behaviour]

    fetch()

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_after_an_answer_that_is_cut_for_good_the_part_stays(server, fetch, tmp_path):
    server.script = ["cut"]

    with pytest.raises(DownloadError, match="Try again later, which goes on where it stopped"):
        fetch(rounds=1)

    assert [path.name for path in tmp_path.iterdir()] == ["file.part"]
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:5120]


def test_a_wrong_digest_is_an_error_and_leaves_nothing(server, fetch, tmp_path):
    server.script = ["damage"] * 3

    with pytest.raises(DownloadError, match=f"digest must be {SHA256}, it is [0-9a-f]{{64}}"):
        fetch()

    assert list(tmp_path.iterdir()) == []
    assert len(server.asked) == 3


def test_damage_on_the_way_is_repaired_by_the_next_try(server, fetch, tmp_path):
    server.script = ["damage"]

    fetch()

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_a_digest_a_part_is_not_trusted(server, fetch, tmp_path):
    (tmp_path / "file.part").write_bytes(b"y" * 1000)

    fetch(sha256=None)

    assert server.asked == [("/file", None)]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_an_address_where_nobody_answers_is_an_error_with_the_reason(tmp_path):
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}/file"

    with pytest.raises(DownloadError, match="refused"):
        download_file([url], tmp_path / "file", rounds=2, wait_s=0)


def test_packed_files_arrive_packed(server, tmp_path, monkeypatch):
    packed = gzip.compress(b"text" * 100)

    def answer(self, behaviour, start):
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

    monkeypatch.setattr(Handler, "answer", answer)

    download_file([f"{server.url}/x.gz"], tmp_path / "x.gz")

    assert (tmp_path / "x.gz").read_bytes() == packed


def test_files_of_a_data_set_are_fetched_and_removed(server, tmp_path):
    folder = tmp_path / "new" / "folder"
    arguments = [[f"{server.url}/a", None, [f"{server.url}/x/c%20d"]], [None, "b", None]]

    paths = default_downloader(folder, *arguments, url_prefix=f"{server.url}/prefix")

    assert paths == [str(folder / name) for name in ("a", "b", "c d")]
    # The names of two are asked for before the files are.
    assert [path for path, _ in server.asked] == ["/a", "/a", "/prefix/b", *["/x/c%20d"] * 2]
    assert all((folder / name).read_bytes() == CONTENT for name in ("a", "b", "c d"))
    (folder / "a.part").touch()
    again = default_downloader(folder, *arguments, url_prefix=f"{server.url}/prefix", clear=True)
    assert again == paths
    assert list(folder.iterdir()) == []


def test_a_file_without_public_address_needs_a_prefix(tmp_path):
    with pytest.raises(NeedURLPrefix, match="private.tar has no public address"):
        default_downloader(tmp_path, [None], ["private.tar"])


def test_an_address_without_a_name_is_refused():
    with pytest.raises(ValueError, match="does not end in the name of a file"):
        filename_from_url("http://127.0.0.1/folder/?x=1")


def test_a_server_that_ignores_the_range_gives_the_file_at_the_first_attempt(
    server, fetch, tmp_path
):
    (tmp_path / "file.part").write_bytes(CONTENT[:100])
    server.script = ["ignore range"]

    fetch(rounds=1)

    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        (None, "download"),
        ("attachment", "download"),
        ('attachment; filename="data set.zip"', "data set.zip"),
        ("attachment; filename*=UTF-8''d%C3%A4ta.zip", "däta.zip"),
        ('attachment; filename="../../etc/data.zip"', "data.zip"),
        ('attachment; filename=".."', "download"),
    ],
)
def test_a_file_without_a_name_is_called_what_its_server_calls_it(
    server, tmp_path, disposition, name
):
    server.disposition = disposition

    paths = default_downloader(tmp_path / "data", [f"{server.url}/download?id=3"], [None])

    assert paths == [str(tmp_path / "data" / name)]
    assert (tmp_path / "data" / name).read_bytes() == CONTENT


def test_a_file_without_a_name_is_asked_for_at_the_next_address(server, tmp_path):
    server.disposition = "attachment; filename=data.zip"
    server.script = [404]
    urls = [[f"{server.url}/first", f"{server.url}/second"]]

    (path,) = default_downloader(tmp_path / "data", urls, [None])

    assert path == str(tmp_path / "data" / "data.zip")


def test_a_file_is_fetched_into_an_open_one(server, tmp_path):
    with open(tmp_path / "file", "wb") as file:
        download(f"{server.url}/file", file, chunk_size=100)

    assert (tmp_path / "file").read_bytes() == CONTENT


def test_what_cannot_be_fetched_into_an_open_file_is_an_error(server):
    server.script = [404]

    with pytest.raises(DownloadError, match="/file could not be fetched: 404 Client Error"):
        download(f"{server.url}/file", io.BytesIO())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (requests.ConnectTimeout("HTTPConnectionPool(...)"), "no connection within 10 seconds"),
        (requests.ReadTimeout("HTTPConnectionPool(...)"), "no answer within 60 seconds"),
        (requests.exceptions.SSLError(), "SSLError"),
    ],
)
def test_why_an_address_gives_nothing_is_said_in_few_words(tmp_path, monkeypatch, error, words):
    def get(*_, **__):
        raise error

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(DownloadError, match=f"fetched:\n  http://a/file: {words}\nTry again later"):
        download_file(["http://a/file"], tmp_path / "file", rounds=1)


def test_a_server_that_is_not_there_is_named_with_the_reason_of_the_system(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/file"

    with pytest.raises(DownloadError, match=f"fetched:\n  {url}: Connection refused\nTry again"):
        download_file([url, url], tmp_path / "file", rounds=1)
    with pytest.raises(DownloadError, match=f"^{url} could not be fetched: Connection refused$"):
        download(url, io.BytesIO())


def test_an_md5_digest_is_a_digest_too(fetch, server, tmp_path):
    md5 = hashlib.md5(CONTENT).hexdigest()
    fetch(sha256=md5)
    fetch(sha256=md5)

    assert (tmp_path / "file").read_bytes() == CONTENT and len(server.asked) == 1
    (tmp_path / "file").unlink()
    with pytest.raises(DownloadError, match="the MD5 digest must be 0{32}, it is " + md5):
        fetch(sha256="0" * 32, rounds=1)


def test_a_file_without_a_published_digest_has_the_one_that_was_seen_beside_it(
    fetch, server, tmp_path, caplog
):
    fetch(sha256=None)

    seen = tmp_path / "file.sha256"
    assert seen.read_text() == f"{SHA256}  file\n"
    assert f"nobody has published its digest; the SHA-256 of this one is {SHA256}" in caplog.text
    assert "another file than before" not in caplog.text

    (tmp_path / "file").unlink()
    seen.write_text("0" * 64 + "  file\n")
    fetch(sha256=None)
    assert "file is another file than before" in caplog.text
    assert seen.read_text() == f"{SHA256}  file\n"

    default_downloader(tmp_path, [server.url + "/file"], ["file"], clear=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_digest_or_address_is_refused_before_anything_is_asked(fetch, server, tmp_path):
    with pytest.raises(ValueError, match="A digest has 32 .* digits; got '123'"):
        fetch(sha256="123")
    with pytest.raises(DownloadError, match="file could not be fetched: no address is known.\nTry"):
        download_file([], tmp_path / "file")
    assert server.asked == [] and list(tmp_path.iterdir()) == []

    fetch(sha256=SHA256.upper())
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("mirrors", ["http://here/", ["http://here/", "http://there"]])
def test_mirrors_are_addresses_of_folders(mirrors):
    with pytest.raises(ValueError, match="each with a slash at its end; got .*http://here/"):
        fill_from_mirrors(mirrors, {"a": None})
