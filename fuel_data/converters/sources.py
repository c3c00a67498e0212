"""Writing one source of an HDF5 file: arrays, ragged arrays of any rank, text, records."""

from collections.abc import Callable, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.converters.storage import Storage

PIECE_BYTES = 2**24
PIECE_EXAMPLES = 256


def as_source(values: Any) -> numpy.ndarray:
    """Take what somebody calls an array of examples as one.

    Parameters
    ----------
    values : array, or sequence of arrays, str or bytes
        The examples, of equal shapes or not.

    Returns
    -------
    array
        Of dtype object if the examples are ragged, text or bytes.
    """
    if hasattr(values, "dtype") and values.dtype.kind != "U":
        return values
    items = list(values)
    if not items or isinstance(items[0], (str, bytes)) or _differ(items):
        array = numpy.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            array[index] = str(item) if isinstance(item, str) else item
        return array
    return numpy.asarray(values)


def _differ(items: Sequence[Any]) -> bool:
    return len({numpy.shape(item) for item in items}) > 1


def kind_of(source: str, arrays: Sequence[numpy.ndarray]) -> str:
    """Tell in what way a source can be stored.

    Parameters
    ----------
    source : str
        Its name, for errors.
    arrays : sequence of array
        Its examples, by splits.

    Returns
    -------
    {'plain', 'text', 'bytes', 'ragged'}

    Raises
    ------
    ValueError
        If it cannot be stored.
    """
    dtype = arrays[0].dtype
    if dtype.kind in "Mm":
        raise ValueError(
            f"Source {source!r} has the dtype {dtype}, which HDF5 has not; store whole numbers, by "
            "values.astype('int64'), and say in a comment what they count."
        )
    if not dtype.hasobject:
        return "plain"
    items = [item for array in arrays for item in array.ravel()]
    for kind, type_ in (("text", str), ("bytes", bytes)):
        if all(isinstance(item, type_) for item in items):
            return kind
    if arrays[0].ndim == 1 and all(isinstance(item, numpy.ndarray) for item in items):
        kinds = {(str(item.dtype), item.ndim) for item in items}
        if len(kinds) == 1 and items[0].ndim > 0 and items[0].dtype.kind in "biufc":
            return "ragged"
        raise ValueError(
            f"Source {source!r}: ragged examples must be numbers of one dtype with the same number "
            f"of axes, at least one; got {sorted(kinds)[:4]}."
        )
    found = sorted({type(item).__name__ for item in items})
    raise ValueError(
        f"Source {source!r}: examples must all be arrays, all str or all bytes; got "
        f"{', '.join(found)}."
    )


def write_source(
    h5file: h5py.File,
    source: str,
    arrays: Sequence[numpy.ndarray],
    labels: Sequence[str] | None,
    storage: Storage,
    progress: Callable[[int], None] | None,
) -> None:
    """Write the examples of one source.

    Parameters
    ----------
    h5file : h5py.File
        A file open for writing.
    source : str
        The name.
    arrays : sequence of array
        The examples; arrays of dtype object if they are ragged, text or bytes.
    labels : sequence of str or None
        Names of the axes, those of ragged examples too.
    storage : Storage
        How numbers are stored. Ragged examples, texts and bytes are not compressed: of what has a
        variable length, HDF5 would pack only where it lies.
    progress : function or None
        Called with the number of bytes written since the last call.

    Raises
    ------
    ValueError
        If it cannot be stored, or the number of labels does not fit.
    """
    kind = kind_of(source, arrays)
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    if kind == "plain":
        dtype = arrays[0].dtype
        dataset = h5file.create_dataset(
            source, shape=shape, dtype=dtype, **storage.options(shape, dtype)
        )
        _write(dataset, arrays, progress)
    elif kind == "text":
        dataset = h5file.create_dataset(source, shape=shape, dtype=h5py.string_dtype())
        _write(dataset, arrays, progress)
    elif kind == "bytes":
        flat = [_objects(numpy.frombuffer(item, "uint8") for item in array) for array in arrays]
        dataset = h5file.create_dataset(source, shape=shape, dtype=h5py.vlen_dtype("uint8"))
        _write(dataset, flat, progress)
    else:
        dataset = _write_ragged(h5file, source, arrays, labels, progress)
    if labels is not None:
        label_axes(dataset, labels)


def _write(
    dataset: h5py.Dataset,
    arrays: Sequence[numpy.ndarray],
    progress: Callable[[int], None] | None,
) -> None:
    start = 0
    for array in arrays:
        first = 0
        while first < len(array):
            piece = array[first : first + _step(dataset, array, start)]
            _write_piece(dataset, slice(start, start + len(piece)), piece)
            start += len(piece)
            first += len(piece)
            if progress is not None:
                progress(_num_bytes(piece))


def _write_piece(dataset: h5py.Dataset, place: slice, piece: numpy.ndarray) -> None:
    if dataset.dtype.kind == "O" and h5py.check_string_dtype(dataset.dtype) is None:
        # By assignment h5py would make one array of vectors of one length, and refuse it, or mix
        # them up if that length is 1.
        dataset.write_direct(piece.astype(dataset.dtype), dest_sel=place)
    else:
        dataset[place] = piece


def _step(dataset: h5py.Dataset, array: numpy.ndarray, start: int) -> int:
    """Give the number of examples to write at once, from `start` of the data set on."""
    # In pieces, so that a memory-mapped input need not fit into memory.
    step = PIECE_EXAMPLES if array.dtype.hasobject else PIECE_BYTES // max(1, array[:1].nbytes)
    if not dataset.chunks:
        return max(1, step)
    # To the end of a chunk, so that none is packed twice.
    rows = dataset.chunks[0]
    return max(1, step // rows) * rows - start % rows


def _num_bytes(piece: numpy.ndarray) -> int:
    if not piece.dtype.hasobject:
        return piece.nbytes
    return sum(getattr(item, "nbytes", len(item)) for item in piece.ravel())


def _objects(items: Any) -> numpy.ndarray:
    items = list(items)
    array = numpy.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array


def _write_ragged(
    h5file: h5py.File,
    source: str,
    arrays: Sequence[numpy.ndarray],
    labels: Sequence[str] | None,
    progress: Callable[[int], None] | None,
) -> h5py.Dataset:
    items = [item for array in arrays for item in array]
    ndim = items[0].ndim
    if labels is not None and len(labels) != ndim + 1:
        raise ValueError(
            f"Source {source!r} has {ndim + 1} axes, so it needs as many labels; got "
            f"{', '.join(labels)}."
        )
    inner = ["index"] if ndim == 1 else [f"index_{axis}" for axis in range(1, ndim + 1)]
    inner = list(labels[1:]) if labels is not None else inner
    # h5py takes the bytes of vectors of the other order as they are.
    dtype = items[0].dtype.newbyteorder("=")
    type_ = h5py.vlen_dtype(dtype)
    dataset = h5file.create_dataset(source, shape=(len(items),), dtype=type_)
    shapes = numpy.array([item.shape for item in items])
    h5file[f"{source}_shapes"] = shapes.astype("int32" if shapes.max() < 2**31 else "int64")
    h5file[f"{source}_shape_labels"] = numpy.array([label.encode("utf-8") for label in inner])
    for name, scale in (("_shapes", "shapes"), ("_shape_labels", "shape_labels")):
        h5file[source + name].make_scale(scale)
        dataset.dims[0].attach_scale(h5file[source + name])
    flat = [_objects(item.ravel().astype(dtype, copy=False) for item in array) for array in arrays]
    _write(dataset, flat, progress)
    return dataset


def label_axes(dataset: h5py.Dataset, labels: Sequence[str]) -> None:
    """Write the axis labels of a source.

    Parameters
    ----------
    dataset : h5py.Dataset
        The source. Of a ragged one only the first axis is labelled here.
    labels : sequence of str
        One for each axis.

    Raises
    ------
    ValueError
        If there are more or fewer labels than axes.
    """
    is_ragged = "shapes" in list(dataset.dims[0]) if dataset.ndim else False
    if len(labels) != dataset.ndim and not is_ragged:
        raise ValueError(
            f"Source {dataset.name.lstrip('/')!r} has {dataset.ndim} axes, so it needs as many "
            f"labels; got {', '.join(labels)}."
        )
    for axis, label in zip(range(dataset.ndim), labels, strict=False):
        dataset.dims[axis].label = label
