"""Where a converted file comes from, written into the file itself.

The root attributes are texts:

``h5py_interface_version``
    version of the file format;
``fuel_convert_version``
    version of the converters' output;
``fuel_convert_command``
    the command that wrote the file;
``fuel_convert_libraries``
    JSON, name → version of the libraries that were used;
``fuel_convert_date``
    when, in UTC, as ISO 8601. If the environment sets ``SOURCE_DATE_EPOCH`` (seconds since 1970),
    it is that time, and then the same command on the same inputs writes the same bytes;
``fuel_convert_inputs``
    JSON, name → SHA-256 of the input files.

The first three are Fuel's.
"""

import datetime
import importlib.metadata
import json
import os
import platform
import time
from typing import Any

import h5py
import numpy

from fuel_data.converters.base import INPUTS_ATTRIBUTE
from fuel_data.datasets.hdf5_format import INTERFACE_VERSION

CONVERT_VERSION = "0.2"


def write_provenance(h5file: h5py.File, command: str) -> None:
    """Write where a file comes from, but for the inputs, which its converter knows.

    Parameters
    ----------
    h5file : h5py.File
        The converted file, open for writing.
    command : str
        The command that converted it.
    """
    texts = {
        "h5py_interface_version": INTERFACE_VERSION,
        "fuel_convert_version": CONVERT_VERSION,
        "fuel_convert_command": command,
        "fuel_convert_libraries": json.dumps(_library_versions(), sort_keys=True),
        "fuel_convert_date": _date(),
    }
    for name, text in texts.items():
        # Names on the disk, which a command has, need be no UTF-8.
        h5file.attrs[name] = numpy.bytes_(text.encode("utf-8", "surrogateescape"))


def read_provenance(h5file: h5py.File) -> dict[str, Any]:
    """Read where a file comes from.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    dict
        ``command``, ``date``, ``format``, ``converter`` (texts), ``libraries`` and ``inputs``
        (dicts); None for what the file does not say.

    Raises
    ------
    ValueError
        If it says it in another way.
    """
    names = {
        "command": "fuel_convert_command",
        "date": "fuel_convert_date",
        "format": "h5py_interface_version",
        "converter": "fuel_convert_version",
        "libraries": "fuel_convert_libraries",
        "inputs": INPUTS_ATTRIBUTE,
    }
    found: dict[str, Any] = {key: _text(h5file, name) for key, name in names.items()}
    for key in ("libraries", "inputs"):
        found[key] = None if found[key] is None else _by_name(h5file, names[key], found[key])
    return found


def _by_name(h5file: h5py.File, name: str, text: str) -> dict[str, str]:
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise ValueError(
            f"{h5file.filename}: the attribute {name!r} must be JSON, names and texts; it is "
            f"{text[:60]!r}."
        )
    return values


def _text(h5file: h5py.File, name: str) -> str | None:
    value = h5file.attrs.get(name)
    if not isinstance(value, (str, bytes, type(None))):
        raise ValueError(f"{h5file.filename}: the attribute {name!r} must be a text.")
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _library_versions() -> dict[str, str]:
    versions = {
        "h5py": h5py.__version__,
        "hdf5": h5py.version.hdf5_version,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }
    try:
        versions["firebrick"] = importlib.metadata.version("firebrick")
    except importlib.metadata.PackageNotFoundError:
        versions["firebrick"] = "not installed"
    return versions


def _date() -> str:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None and not given.isdecimal():
        raise ValueError(
            f"SOURCE_DATE_EPOCH must be a number of seconds since 1970; got {given!r}. Unset it."
        )
    seconds = int(time.time() if given is None else given)
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()
