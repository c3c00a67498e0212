"""Finding files and remembering where we are."""

import contextlib
import os
from collections.abc import Iterator


def find_in_data_path(filename: str | os.PathLike[str]) -> str:
    """Find a file in the folders of the data path.

    Parameters
    ----------
    filename : path
        Name of the file, relative to a folder of the data path.

    Returns
    -------
    str
        Path of the first file of that name.

    Raises
    ------
    OSError
        If no folder has it; the folders are listed. If there is none, that is said.
    """
    from fuel_data.config_parser import config

    folders = [os.path.expandvars(os.path.expanduser(folder)) for folder in config.data_path]
    for folder in folders:
        path = os.path.join(folder, filename)
        if os.path.isfile(path):
            return path
    if not any(folders):
        raise OSError(
            f"{os.fspath(filename)!r} cannot be looked for: the data path is empty. Set "
            "FUEL_DATA_PATH to the folder where it is."
        )
    raise OSError(
        f"{os.fspath(filename)!r} is in no folder of the data path ({os.pathsep.join(folders)}). "
        "Move it there, or set FUEL_DATA_PATH to the folder where it is."
    )


@contextlib.contextmanager
def remember_cwd() -> Iterator[None]:
    """Return to the current working folder when the block ends, however it ends.

    Yields
    ------
    None
        The block may change the working folder.
    """
    folder = os.getcwd()
    try:
        yield
    finally:
        os.chdir(folder)
