"""Fetching files: checked, resumed, retried, from several addresses in turn.

A file is written beside its target under the name ``NAME.part``. It takes its final name when its
digest is right, and not before. What is left of a download that was stopped is gone on with: by any
address if the digest is known, which tells in the end whether it all fits; otherwise by the same
address, if its server says that the file is the same (``ETag`` or ``Last-Modified``, which are kept
in ``NAME.part.from``). One process at a time fetches a file.
"""

import argparse
import contextlib
import email.message
import json
import logging
import os
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from fuel_data.exceptions import NeedURLPrefix
from fuel_data.utils.algorithms import algorithm_of
from fuel_data.utils.digests import file_digest
from fuel_data.utils.files import move_into_place
from fuel_data.utils.lock import take_lock
from fuel_data.utils.progress import progress_bar

logger = logging.getLogger(__name__)

CHUNK_BYTES = 2**18
TIMEOUT_S = (10, 60)
ROUNDS = 3
WAIT_S = 1.0
SEEN = ".sha256"
PART = ".part"
ORIGIN = ".part.from"
# Request timeout, too early, too many requests.
TRY_AGAIN = (408, 425, 429)


class DownloadError(OSError):
    """A file could not be fetched from any of its addresses."""


def default_downloader(
    directory: str | os.PathLike[str],
    urls: Sequence[str | Sequence[str] | None],
    filenames: Sequence[str | None],
    url_prefix: str | None = None,
    clear: bool = False,
    digests: Sequence[str | None] | None = None,
) -> list[str]:
    """Fetch the files of a data set, or remove them.

    Parameters
    ----------
    directory : path
        Folder for the files, made if it is not there.
    urls : sequence of str, sequence of str, or None
        For each file its address, or several to try in turn, or None if it has no public one.
    filenames : sequence of str or None
        For each file its name; None for what the server calls it (Content-Disposition), or else
        the last part of its address.
    url_prefix : str, optional
        What to put before the name where the address is None.
    clear : bool, optional
        Whether to remove the files instead.
    digests : sequence of str or None, optional
        For each file its SHA-256 or MD5 digest, or None if nobody has published one; then the
        SHA-256 digest of what came is written beside the file, as ``NAME.sha256``.

    Returns
    -------
    list of str
        Paths of the files; with `clear`, of those that were removed.

    Raises
    ------
    NeedURLPrefix
        If an address is None and there is no `url_prefix`.
    DownloadError
        If a file could not be fetched.
    """
    digests = [None] * len(urls) if digests is None else digests
    paths = []
    for addresses, filename, sha256 in zip(urls, filenames, digests, strict=True):
        mirrors = _mirrors(addresses, filename, url_prefix)
        path = os.path.join(directory, filename or _filename_of_server(mirrors))
        if not clear:
            ensure_directory_exists(directory)
            download_file(mirrors, path, sha256)
        elif not remove_download(path):
            continue
        paths.append(path)
    return paths


def fill_from_mirrors(
    mirrors: Sequence[str], digests: Mapping[str, str | None]
) -> Callable[[argparse.ArgumentParser], Callable]:
    """Make what describes a downloader of files that lie together at several places.

    Parameters
    ----------
    mirrors : sequence of str
        Addresses of the folders, each with a slash at the end.
    digests : mapping of str to str or None
        For each file by its name its digest, as for `default_downloader`.

    Returns
    -------
    function
        ``fill_subparser(subparser)``, which gives `default_downloader`.

    Raises
    ------
    ValueError
        If an address is that of no folder.
    """

    if isinstance(mirrors, str) or not all(mirror.endswith("/") for mirror in mirrors):
        raise ValueError(
            "Mirrors must be a sequence of addresses of folders, each with a slash at its end; got "
            f"{mirrors!r}."
        )

    def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
        """Describe the downloader to `fuel-download`; the parser's defaults get the addresses."""
        subparser.set_defaults(
            urls=[[mirror + name for mirror in mirrors] for name in digests],
            filenames=list(digests),
            digests=list(digests.values()),
        )
        return default_downloader

    return fill_subparser


def _mirrors(
    addresses: str | Sequence[str] | None, filename: str | None, url_prefix: str | None
) -> list[str]:
    if addresses is None:
        if url_prefix is None or filename is None:
            raise NeedURLPrefix(
                f"{filename or 'A file'} has no public address. Say where it is by the address of "
                "its folder, as `url_prefix`."
            )
        return [url_prefix.rstrip("/") + "/" + filename]
    return [addresses] if isinstance(addresses, str) else list(addresses)


def _filename_of_server(mirrors: Sequence[str]) -> str:
    """Ask the servers in turn what the file is called; the first address tells if none does."""
    import requests

    for url in mirrors:
        with (
            contextlib.suppress(*_network_errors()),
            requests.get(url, stream=True, timeout=TIMEOUT_S) as response,
        ):
            if response.ok:
                message = email.message.Message()
                message["Content-Disposition"] = response.headers.get("Content-Disposition", "")
                # A server names the file, not the place for it.
                name = os.path.basename((message.get_filename() or "").replace("\\", "/"))
                return filename_from_url(url) if name in ("", ".", "..") else name
    return filename_from_url(mirrors[0])


def filename_from_url(url: str) -> str:
    """Give the name of the file at an address.

    Parameters
    ----------
    url : str
        The address.

    Returns
    -------
    str
        The last part of its path.

    Raises
    ------
    ValueError
        If the path ends with a slash.
    """
    name = os.path.basename(urllib.parse.unquote(urllib.parse.urlparse(url).path))
    if not name:
        raise ValueError(f"The address {url} does not end in the name of a file; give the name.")
    return name


def ensure_directory_exists(directory: str | os.PathLike[str]) -> None:
    """Make a folder and those above it, if they are not there.

    Parameters
    ----------
    directory : path
        The folder.
    """
    os.makedirs(directory, exist_ok=True)


def remove_download(path: str | os.PathLike[str]) -> bool:
    """Remove a file that was fetched, its digest, and what is left of a download.

    Parameters
    ----------
    path : path
        The file. It need not be there.

    Returns
    -------
    bool
        Whether there was anything to remove.
    """
    names = [os.fspath(path) + suffix for suffix in ("", PART, ORIGIN, SEEN)]
    there = [name for name in names if os.path.exists(name)]
    for name in there:
        os.remove(name)
    return bool(there)


def download_file(
    urls: Sequence[str],
    path: str | os.PathLike[str],
    sha256: str | None = None,
    *,
    rounds: int = ROUNDS,
    wait_s: float = WAIT_S,
) -> None:
    """Fetch a file, unless it is there already.

    Parameters
    ----------
    urls : sequence of str
        Addresses of the file, tried in turn.
    path : path
        Where to put it.
    sha256 : str, optional
        Its digest; an MD5 digest is taken too. Without one, a file of that name is taken for the
        right one, a download that was stopped is gone on with only if the server says that the file
        is the same, and the digest of what came is written into ``NAME.sha256`` and logged; a
        warning says if another one stood there.
    rounds : int, optional
        How often to try all addresses.
    wait_s : float, optional
        How long to wait after the first round, in seconds; each time twice as long. An address
        that does not have the file (such as 404) is not tried again.

    Raises
    ------
    DownloadError
        If no address gave the file. The error has the reason for each of them.
    ValueError
        If the digest has the length of none.
    """
    path = os.fspath(path)
    if sha256 is not None:
        # What is no digest is known before hours are spent.
        algorithm_of(sha256)
        sha256 = sha256.lower()
    if _is_there(path, sha256):
        return
    with _Part(path, sha256) as part:
        # Another process may have fetched it while this one waited.
        if _is_there(path, sha256):
            part.clear()
            return
        _fetch_from_any(urls, part, rounds, wait_s)
        part.finish()


def _fetch_from_any(urls: Sequence[str], part: "_Part", rounds: int, wait_s: float) -> None:
    """Try addresses in turn until one gives the file."""
    failures: dict[str, Exception] = {}
    for number in range(rounds):
        left = [url for url in urls if not isinstance(failures.get(url), _Refused)]
        if number and left:
            time.sleep(wait_s * 2 ** (number - 1))
        for url in left:
            try:
                _fetch(url, part)
                part.check()
            except _network_errors() as error:
                failures[url] = error
            else:
                return
    reasons = "".join(f"\n  {url}: {_in_words(error)}" for url, error in failures.items())
    raise DownloadError(
        f"{os.path.basename(part.target)} could not be fetched:{reasons or ' no address is known.'}"
        "\nTry again later, which goes on where it stopped if it can, or fetch the file by other "
        f"means and put it at {part.target}."
    )


def download(url: str, file_handle: IO[bytes], chunk_size: int = CHUNK_BYTES) -> None:
    """Fetch a file into one that is open, once and without a check, as in Fuel.

    Parameters
    ----------
    url : str
        The address.
    file_handle : binary file
        Open for writing.
    chunk_size : int, optional
        How many bytes are asked for at a time.

    Raises
    ------
    DownloadError
        If the address did not give the whole file. What came is in the file. `download_file`
        leaves no such file behind.
    """
    import requests

    try:
        with requests.get(url, stream=True, timeout=TIMEOUT_S) as response:
            response.raise_for_status()
            for chunk in response.iter_content(chunk_size):
                file_handle.write(chunk)
    except _network_errors() as error:
        raise DownloadError(f"{url} could not be fetched: {_in_words(error)}") from error


def _network_errors() -> tuple[type[Exception], ...]:
    import requests
    import urllib3

    return (requests.RequestException, urllib3.exceptions.HTTPError, _WrongAnswer)


def _in_words(error: Exception) -> str:
    """Say why an address gave nothing: the libraries name their own objects and tries."""
    import requests

    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {TIMEOUT_S[0]} seconds"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_S[1]} seconds"
    if isinstance(error, requests.HTTPError):
        return str(error)
    # What the system or the server said is what all the others come from.
    first: BaseException = error
    while not isinstance(error, _WrongAnswer) and (first.__cause__ or first.__context__):
        first = first.__cause__ or first.__context__ or first
    return str(getattr(first, "strerror", None) or first) or type(first).__name__


class _WrongAnswer(Exception):
    """A server answered something else than the file."""


class _Refused(_WrongAnswer):
    """A server will give no other answer if it is asked again."""


def _is_there(path: str, sha256: str | None) -> bool:
    if sha256 is None:
        return os.path.isfile(path)
    return os.path.isfile(path) and file_digest(path, algorithm_of(sha256)) == sha256


def _record_digest(path: str) -> None:
    """Write the digest of a file for which nobody has published one, as sha256sum would."""
    name, got = os.path.basename(path), file_digest(path)
    line = f"{got}  {name}\n"
    before = ""
    if os.path.exists(path + SEEN):
        with open(path + SEEN, encoding="utf-8") as file:
            before = file.read(CHUNK_BYTES)
    if before not in ("", line):
        logger.warning("%s is another file than before: %s was %s", name, got, before.split()[:1])
    with open(path + SEEN, "w", encoding="utf-8") as file:
        file.write(line)
    logger.warning(
        "%s: nobody has published its digest; the SHA-256 of this one is %s, written to %s",
        name,
        got,
        path + SEEN,
    )


class _Part:
    """What has come of a file, kept beside its place; one process at a time has it.

    Parameters
    ----------
    target : str
        Where the file belongs.
    sha256 : str or None
        Its digest, if it is known.
    """

    def __init__(self, target: str, sha256: str | None) -> None:
        self.target, self.sha256 = target, sha256
        self.path, self.origin = target + PART, target + ORIGIN
        self._is_finished = False

    def __enter__(self) -> "_Part":
        lock = take_lock(self.path, wait=False)
        if lock is None:
            logger.warning("%s: another process is fetching it; waiting", self.target)
            lock = take_lock(self.path)
        assert lock is not None
        self._lock = lock
        return self

    def __exit__(self, *error: Any) -> None:
        # What is empty is of no use. Once it has its name, another process may have begun
        # a new one.
        if not self._is_finished and not self.size:
            os.remove(self.path)
            self._forget_origin()
        os.close(self._lock)

    @property
    def size(self) -> int:
        return os.path.getsize(self.path)

    def clear(self) -> None:
        """Begin again. The file stays, as its lock does."""
        os.truncate(self.path, 0)
        self._forget_origin()

    def _forget_origin(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.origin)

    def headers(self, url: str) -> dict[str, str]:
        """Say what to ask an address for, so that it goes on with what has come."""
        if self.size and self.sha256 is not None:
            return {"Range": f"bytes={self.size}-"}
        version = self._version(url) if self.size else None
        if version is None:
            # Nothing would notice if the rest came from another version of the file.
            self.clear()
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": version}

    def _version(self, url: str) -> str | None:
        try:
            with open(self.origin, encoding="utf-8") as file:
                known = json.load(file)
        except (OSError, ValueError):
            return None
        return known.get("version") if known.get("url") == url else None

    def begin(self, url: str, headers: Mapping[str, str]) -> None:
        """Remember where the bytes come from that begin to come."""
        self.clear()
        etag = headers.get("ETag", "W/")
        # A weak one does not say that the bytes are the same.
        version = headers.get("Last-Modified") if etag.startswith("W/") else etag
        if self.sha256 is None and version is not None:
            with open(self.origin, "w", encoding="utf-8") as file:
                json.dump({"url": url, "version": version}, file)

    def check(self) -> None:
        """Refuse what has come if it is not the file."""
        if self.sha256 is None:
            return
        algorithm = algorithm_of(self.sha256)
        got = file_digest(self.path, algorithm)
        if got != self.sha256:
            self.clear()
            name = algorithm.upper().replace("SHA", "SHA-")
            raise _WrongAnswer(f"the {name} digest must be {self.sha256}, it is {got}")

    def finish(self) -> None:
        """Give the file its name."""
        move_into_place(self.path, self.target)
        self._is_finished = True
        self._forget_origin()
        if self.sha256 is None:
            _record_digest(self.target)


def _fetch(url: str, part: _Part) -> None:
    import requests

    # A server that packs the answer would give other bytes than those of the file.
    headers = {"Accept-Encoding": "identity", **part.headers(url)}
    have = part.size
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as response:
        if response.status_code == 416:
            _check_end(response, part)
            return
        _check_answer(response, part)
        # A server may ignore that a part was asked for.
        start = have if response.status_code == 206 else 0
        if not start:
            part.begin(url, response.headers)
        length = int(response.headers.get("Content-Length", 0))
        name = os.path.basename(part.target)
        with (
            open(part.path, "r+b") as file,
            progress_bar(name, start + length, "Fetching") as progress,
        ):
            file.seek(start)
            progress(start)
            is_whole = _copy(response, file, progress)
            received = file.tell() - start
        # Before its version 2, urllib3 takes an answer that is cut short for the whole.
        if not is_whole or (length and received != length):
            of = f" of {length:,}" if length else ""
            raise _WrongAnswer(f"the answer ended after {received:,}{of} bytes")
        is_chunked = response.headers.get("Transfer-Encoding", "").lower() == "chunked"
        if part.sha256 is None and not length and not is_chunked:
            logger.warning(
                "%s: the server did not say how long it is, so whether it is whole is not known",
                name,
            )


def _copy(response: Any, file: IO[bytes], progress: Callable[[int], None]) -> bool:
    """Write what comes; tell whether the answer came to its end."""
    import urllib3

    try:
        for piece in response.raw.stream(CHUNK_BYTES, decode_content=False):
            file.write(piece)
            progress(len(piece))
    except urllib3.exceptions.ProtocolError:
        return False
    return True


def _check_end(response: Any, part: _Part) -> None:
    """Refuse what has come if its server has a file of another length."""
    # With a digest, that knows: it is complete, or not of this file.
    length = response.headers.get("Content-Range", "").rpartition("/")[2]
    if part.sha256 is None and length != str(part.size):
        part.clear()
        raise _WrongAnswer("the file is shorter than what had come, so it is another one")


def _check_answer(response: Any, part: _Part) -> None:
    if response.status_code not in (200, 206):
        code = response.status_code
        final = 400 <= code < 500 and code not in TRY_AGAIN
        raise (_Refused if final else _WrongAnswer)(f"the server answered {code} {response.reason}")
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/html" and not part.target.lower().endswith((".html", ".htm")):
        raise _Refused("the server answered with a page to read (text/html) in place of the file")
    if response.status_code == 206:
        first = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
        if first != str(part.size):
            part.clear()
            raise _WrongAnswer(f"the server answered with the bytes from {first or '?'} on")
