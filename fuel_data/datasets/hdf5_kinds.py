"""What a path is that was given for an HDF5 file and is none, and what to do about it."""

import os
import stat

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SPECIAL = {
    stat.S_IFDIR: "a folder: give the file in it",
    stat.S_IFIFO: "a pipe: write what comes from it into a file",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device: give a file on it",
}
# How files begin that are taken for HDF5 files.
_OTHERS = {
    b"\x1f\x8b": "compressed: unpack it with `gunzip`",
    b"BZh": "compressed: unpack it with `bunzip2`",
    b"\xfd7zXZ\x00": "compressed: unpack it with `unxz`",
    b"\x28\xb5\x2f\xfd": "compressed: unpack it with `unzstd`",
    b"PK\x03\x04": "a zip archive, as .npz files are too: unpack it, or use `fuel-convert arrays`",
    b"\x93NUMPY": "an array of numpy: write it to HDF5 with `fuel-convert arrays`",
    b"MATLAB 5.0": "a MATLAB file of before 7.3: save it in MATLAB with '-v7.3', or read it with "
    "scipy.io.loadmat",
    b"CDF": "a netCDF file of before netCDF-4: convert it with `nccopy -k nc4`",
    b"\x0e\x03\x13\x01": "an HDF4 file: convert it with `h4toh5`",
    b"version https://git-lfs": "a pointer of Git LFS: fetch the file with `git lfs pull`",
    b"<": "a web page or XML, as a failed download leaves it: fetch it again",
}


def check_kind(path: str | os.PathLike[str]) -> None:
    """Check that there is a file, that it may be read, and that it is one of HDF5.

    Parameters
    ----------
    path : path
        A file of whatever kind. Nothing is read from what is no regular file, since that could
        wait for ever.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    PermissionError
        If the file must not be read.
    OSError
        If it is something else than an HDF5 file.
    """
    who = f"{os.fsdecode(path)} cannot be opened as an HDF5 file"
    try:
        what = _what_else(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{who}: there is no such file.") from error
    except PermissionError as error:
        raise PermissionError(
            f"{who}: you may not read it. Ask its owner for `chmod a+r` on it and `chmod a+x` on "
            "the folders that it is in, or for a copy."
        ) from error
    except (OSError, ValueError) as error:
        # Links in circles, names that are too long or have a zero in them.
        raise OSError(f"{who}: {getattr(error, 'strerror', None) or error}.") from error
    if what is not None:
        raise OSError(f"{who}: it is {what}.")


def _what_else(path: str | os.PathLike[str]) -> str | None:
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        return _SPECIAL.get(stat.S_IFMT(found.st_mode), "no regular file")
    if not found.st_size:
        return "empty: fetch or convert it again"
    with open(path, "rb") as file:
        beginning = file.read(64)
        # At the beginning, or behind a user block of 512 bytes, 1024, 2048 and so on.
        place = 0
        while place < found.st_size:
            file.seek(place)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return None
            place = 2 * place or 512
    for start, what in _OTHERS.items():
        if beginning.startswith(start):
            return what
    return (
        "a file of another kind, or its beginning is damaged: the signature of HDF5 is missing. "
        "Convert it, or fetch it again"
    )
