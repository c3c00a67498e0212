"""What a joined file keeps of its parts, in the root attribute ``joined_parts``: what they are.

The attribute is JSON: the path of each part, as the virtual data sets have it, and of the part its
size, a digest of up to 4 MiB of its bytes (``content``), one of what it says of splits, shapes,
types and axis labels (``header``), and one of its attribute ``digests``.
"""

import json
from collections.abc import Mapping
from typing import Any

import h5py
import numpy

from fuel_data.datasets import hdf5_digests
from fuel_data.datasets.hdf5_files import damage_in_words
from fuel_data.utils.digests import digest, known_fingerprint, settled_version

ATTRIBUTE = "joined_parts"
_WORDS = {
    "size": "size",
    "header": "splits, shapes, types or labels",
    "digests": "digests",
    "content": "bytes",
}
# What this process found to be what was joined.
_right: set[tuple[Any, ...]] = set()


def write_parts(h5file: h5py.File, parts: Mapping[str, h5py.File]) -> None:
    """Write into a joined file what its parts are.

    Parameters
    ----------
    h5file : h5py.File
        The joined file, open for writing.
    parts : dict of str to h5py.File
        Path, as the virtual data sets have it, → the file.
    """
    found = {name: _describe(part) for name, part in parts.items()}
    h5file.attrs[ATTRIBUTE] = numpy.bytes_(json.dumps(found, sort_keys=True).encode())


def check_parts(h5file: h5py.File, parts: Mapping[str, h5py.File]) -> None:
    """Refuse parts that are not those which were joined, if the joined file says which these are.

    Parameters
    ----------
    h5file : h5py.File
        The joined file.
    parts : dict of str to h5py.File
        Path, as the virtual data sets have it, → what is there. Each is looked at once in a
        process, unless it is written again.

    Raises
    ------
    ValueError
        If one is another, or the attribute is damaged.
    """
    recorded = _read_parts(h5file)
    for name, part in parts.items():
        if name in recorded:
            with damage_in_words(part.filename):
                _check_part(h5file, recorded[name], part)


def _read_parts(h5file: h5py.File) -> dict[str, dict[str, Any]]:
    if ATTRIBUTE not in h5file.attrs:
        return {}
    try:
        found = json.loads(bytes(h5file.attrs[ATTRIBUTE]))
        if any(set(_WORDS) - set(expected) for expected in found.values()):
            raise ValueError(f"each has {', '.join(sorted(_WORDS))}")
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{h5file.filename}: the attribute {ATTRIBUTE!r} does not say what the parts are "
            f"({error}). The file is damaged: join the parts again by fuel-convert join."
        ) from error
    return found


def _check_part(h5file: h5py.File, expected: Mapping[str, Any], part: h5py.File) -> None:
    version = settled_version(part.filename)
    key = None if version is None else (version, digest(expected))
    if key is not None and key in _right:
        return
    got = _describe(part)
    wrong = [words for kind, words in _WORDS.items() if got[kind] != expected[kind]]
    if wrong:
        sizes = f" (it had {expected['size']} bytes, has {got['size']})" if "size" in wrong else ""
        raise ValueError(
            f"{h5file.filename}: its part {part.filename} is not the file that was joined. "
            f"It differs in {', '.join(wrong)}{sizes}: it has been damaged, written again or "
            "exchanged. Put the old file back or, if this one is right, join the files again by "
            "`fuel-convert join`."
        )
    if key is not None:
        _right.add(key)


def _describe(part: h5py.File) -> dict[str, Any]:
    digests = part.attrs.get(hdf5_digests.ATTRIBUTE)
    try:
        header = hdf5_digests.digest_header(part)
    except ValueError:
        # What has been put there may have another form.
        header = None
    return {
        **known_fingerprint(part.filename),
        "header": header,
        "digests": None if digests is None else digest(str(digests)),
    }
