"""Digests by which damage of a file shows, in the root attribute ``digests`` of files made here.

The attribute is JSON: the SHA-256 of the values of each source, as they are in memory in C order
(of what has variable length, each example after its length in bytes as 8 bytes, little-endian,
and so are the fields and vectors in it; of a reference, whether there is one), and that of what the
file says of splits, shapes, types and axis labels.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.datasets import hdf5_format
from fuel_data.datasets.hdf5_files import find_dataset
from fuel_data.utils.digests import digest, settled_version

ATTRIBUTE = "digests"
#: Sources of at most so many bytes are checked whenever a file is opened anew.
CHECKED_BYTES = 2**26
_PIECE_BYTES = 2**24
# Of a piece that is larger because its chunks are.
_MOST_BYTES = 2**27
_PIECE_EXAMPLES = 256
# What this process found right.
_right: set[tuple[Any, ...]] = set()


def digest_source(dataset: h5py.Dataset) -> str:
    """Digest the values of a source.

    Parameters
    ----------
    dataset : h5py.Dataset
        The source.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.
    """
    content = hashlib.sha256()
    example = math.prod(dataset.shape[1:]) * dataset.dtype.itemsize
    step = max(1, _PIECE_BYTES // max(1, example))
    step = min(step, _PIECE_EXAMPLES) if dataset.dtype.hasobject else step
    if dataset.chunks:
        step = max(1, step // dataset.chunks[0]) * dataset.chunks[0]
        step = min(step, max(1, _MOST_BYTES // max(1, example)))
    for start in range(0, len(dataset), step):
        values = dataset[start : start + step]
        if not values.dtype.hasobject:
            content.update(values.tobytes())
            continue
        for item in values.ravel():
            content.update(_joined([item]))
    return content.hexdigest()


def _joined(items: Iterable[Any]) -> bytes:
    """Join values of variable length, each after its length."""
    return b"".join(len(data).to_bytes(8, "little") + data for data in map(_bytes_of, items))


def _bytes_of(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    values = numpy.asarray(item)
    if not values.dtype.hasobject:
        return values.tobytes()
    # The bytes of objects in objects are addresses in memory.
    if values.dtype.names:
        return _joined(item[name] for name in values.dtype.names)
    if isinstance(item, numpy.ndarray):
        return _joined(values.ravel())
    return item.encode() if isinstance(item, str) else bytes([bool(item)])


def digest_header(h5file: h5py.File) -> str:
    """Digest what a file says of splits, shapes, types and axis labels.

    Parameters
    ----------
    h5file : h5py.File
        An open file of Fuel's format.

    Returns
    -------
    str
    """
    rows = [
        [row.split, row.source, row.start, row.stop, _indices(h5file, row), row.available]
        for row in hdf5_format.split_rows(h5file)
    ]
    described = hdf5_format.describe_sources(h5file)
    layout = []
    for name in sorted(described):
        dataset = h5file[name]
        layout.append([name, dataset.shape, dataset.dtype.str, described[name][1]])
    ragged = sorted(name for name, (is_ragged, _) in described.items() if is_ragged)
    return digest([rows, layout, ragged])


def _indices(h5file: h5py.File, row: hdf5_format.SplitRow) -> Any:
    return h5file[row.indices][()] if row.indices else None


def add_digests(h5file: h5py.File) -> None:
    """Write the digests of all sources into a new file, if it has splits and none of its own.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing, complete. If it has virtual sources, it stays without digests:
        those of its parts count.
    """
    if "split" not in h5file.attrs or ATTRIBUTE in h5file.attrs:
        return
    sources = [h5file.get(name) for name in hdf5_format.get_all_sources(h5file)]
    if all(isinstance(source, h5py.Dataset) and not source.is_virtual for source in sources):
        write_digests(h5file)


def write_digests(h5file: h5py.File) -> None:
    """Write the digests of all sources into a file.

    Parameters
    ----------
    h5file : h5py.File
        A file of Fuel's format, open for writing, complete.
    """
    found = {"": digest_header(h5file)}
    for name in _with_shapes(h5file, hdf5_format.get_all_sources(h5file)):
        found[name] = digest_source(find_dataset(h5file, name))
    h5file.attrs[ATTRIBUTE] = numpy.bytes_(json.dumps(found, sort_keys=True).encode())


def _with_shapes(h5file: h5py.File, sources: Sequence[str]) -> list[str]:
    ragged = set(hdf5_format.get_vlen_sources(h5file)).intersection(sources)
    scales = [hdf5_format.scales(h5file[source])["shapes"] for source in sorted(ragged)]
    return [*sources, *(scale.name.lstrip("/") for scale in scales)]


def check_digests(
    h5file: h5py.File, sources: tuple[str, ...], max_bytes: int | None = CHECKED_BYTES
) -> bool:
    """Check the values of sources against the digests in their file, if it has some.

    Parameters
    ----------
    h5file : h5py.File
        An open file of Fuel's format.
    sources : tuple of str
        The sources that are of interest.
    max_bytes : int or None
        Sources of more bytes are passed over, and so are the largest where all have more than four
        times as many. What was found right is not read again before its file was written. With
        None everything is read.

    Returns
    -------
    bool
        Whether it has some.

    Raises
    ------
    OSError
        If the file is not what was written.
    """
    if ATTRIBUTE not in h5file.attrs:
        return False
    try:
        expected = json.loads(bytes(h5file.attrs[ATTRIBUTE]))
        wrong = [] if digest_header(h5file) == expected[""] else ["the splits or axes"]
        for name, dataset in _chosen(h5file, sources, max_bytes):
            key = None if max_bytes is None else _key(dataset, expected[name])
            if key is not None and key in _right:
                continue
            if digest_source(dataset) != expected[name]:
                wrong.append(f"source {name!r}")
            elif key is not None:
                _right.add(key)
    except (ValueError, KeyError, TypeError) as error:
        wrong = [f"the attribute {ATTRIBUTE!r} ({error})"]
    if wrong:
        raise OSError(
            f"{h5file.filename} is damaged: {', '.join(wrong)} cannot be what was written, says "
            "the attribute 'digests'. Fetch or convert the file again. If you have changed it "
            "yourself, delete that attribute, or renew it by "
            "fuel_data.datasets.hdf5_digests.write_digests."
        )
    return True


def _chosen(
    h5file: h5py.File, sources: tuple[str, ...], max_bytes: int | None
) -> Iterator[tuple[str, h5py.Dataset]]:
    """Choose what is checked: all, or what is small, the smallest first, up to a bound in all."""
    found = [(name, find_dataset(h5file, name)) for name in _with_shapes(h5file, sources)]
    total = 0
    for name, dataset in sorted(found, key=lambda item: _num_bytes(item[1])):
        total += _num_bytes(dataset)
        if max_bytes is None or (_num_bytes(dataset) <= max_bytes and total <= 4 * max_bytes):
            yield name, dataset


def _key(dataset: h5py.Dataset, expected: str) -> tuple[Any, ...] | None:
    """Name the values of a data set as long as nobody writes its file, if that can be told."""
    file = dataset.file
    if file.mode != "r" or file.driver != "sec2" or dataset.is_virtual or dataset.external:
        return None
    # Of the open file: another one may have its name by now.
    version = settled_version(file.id.get_vfd_handle())
    return None if version is None else (version, dataset.name, expected)


def _num_bytes(dataset: h5py.Dataset) -> int:
    if dataset.dtype.hasobject:
        # The values are elsewhere in the file.
        return dataset.file.id.get_filesize()
    return math.prod(dataset.shape) * dataset.dtype.itemsize
