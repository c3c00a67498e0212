"""The sound of a YouTube video, fetched by yt-dlp."""

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Callable

from fuel_data.downloaders.base import DownloadError, ensure_directory_exists, remove_download


def audio_name(youtube_id: str) -> str:
    """Name the file with the sound of a video.

    Parameters
    ----------
    youtube_id : str
        What YouTube calls the video.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If YouTube calls no video so.
    """
    if not re.fullmatch("[A-Za-z0-9_-]+", youtube_id):
        raise ValueError(
            "--youtube-id must be letters, digits, - and _, what stands after v= in the "
            f"address of the video; got {youtube_id!r}."
        )
    return f"{youtube_id}.m4a"


def download(directory: str | os.PathLike[str], youtube_id: str, clear: bool = False) -> list[str]:
    """Fetch the sound of a video, the best that there is as m4a.

    Parameters
    ----------
    directory : path
        Folder for the file, made if it is not there.
    youtube_id : str
        What YouTube calls the video.
    clear : bool, optional
        Whether to remove the file instead.

    Returns
    -------
    list of str
        Path of the file ``ID.m4a``; with `clear`, if it was removed.

    Raises
    ------
    DownloadError
        If the program yt-dlp is missing, or could not fetch it.
    ValueError
        If YouTube calls no video so.
    """
    path = os.path.join(directory, audio_name(youtube_id))
    if clear:
        return [path] if remove_download(path) else []
    if os.path.isfile(path):
        return [path]
    if shutil.which("yt-dlp") is None:
        raise DownloadError(
            "youtube_audio: the program yt-dlp fetches from YouTube, and it is not on the PATH. "
            f"Install it, as by `pip install yt-dlp`, or put the sound at {path} by other means."
        )
    ensure_directory_exists(directory)
    # It writes to ID.m4a.part first, and goes on with that the next time. A per cent sign in the
    # name would be a field to fill in.
    command = ["yt-dlp", "--format", "bestaudio[ext=m4a]", "--no-playlist", "--quiet"]
    command += ["--output", path.replace("%", "%%")]
    command += ["--", f"https://www.youtube.com/watch?v={youtube_id}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode or not os.path.isfile(path):
        said = done.stderr.decode("utf-8", "replace").strip()
        raise DownloadError(f"{audio_name(youtube_id)} could not be fetched: {said}")
    return [path]


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the downloader to `fuel-download`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `download`.
    """
    subparser.add_argument("--youtube-id", required=True, help="what YouTube calls the video")
    return download
