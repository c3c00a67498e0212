"""The layout of Fuel's HDF5 files, format 0.3: splits, sources, axis labels, ragged sources.

Every source is a data set in the root group, its first axis the examples. The root attribute
``split`` is an array of records, one for each split and source, with the fields

``split``, ``source``
    names, as bytes in UTF-8;
``start``, ``stop``
    int64, the examples of the split;
``indices``
    an object reference to a one-dimensional data set of indices, which takes the place of start
    and stop, or a null reference;
``available``
    bool, whether the split has this source;
``comment``
    bytes, ``b'.'`` if there is none.

The dimension labels of a source are its axis labels. A ragged source has one dimension and a
variable-length type; its examples are stored flat. Two dimension scales, named ``shapes`` (an
integer array of shape (example, axis)) and ``shape_labels`` (bytes of shape (axis,)), hang on its
first dimension and say how to unfold them.
"""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import h5py
import numpy

from fuel_data.utils.names import nearest_name
from fuel_data.utils.subset import Subset

INTERFACE_VERSION = "0.3"
_FIELDS = {"split", "source", "start", "stop", "indices", "available", "comment"}


@dataclasses.dataclass(frozen=True)
class SplitRow:
    """What a file says about one source in one split.

    Parameters
    ----------
    split : str
        Name of the split.
    source : str
        Name of the source.
    start, stop : int
        The split has the examples from `start` to before `stop`, if there are no `indices`.
    indices : h5py.Reference
        Where the file keeps the indices of the split's examples; false if it keeps none.
    available : bool
        Whether the split has this source.
    comment : str
        What the maker of the file had to say.
    """

    split: str
    source: str
    start: int
    stop: int
    indices: h5py.Reference
    available: bool
    comment: str


def create_split_array(split_dict: Mapping[str, Mapping[str, Sequence[Any]]]) -> numpy.ndarray:
    """Make the root attribute ``split`` of a file.

    Parameters
    ----------
    split_dict : dict
        Split name → source name → ``(start, stop)``, ``(start, stop, indices)`` or
        ``(start, stop, indices, comment)``. `indices` is a reference to a data set of indices, or
        None. A source that a split does not name is not available there.

    Returns
    -------
    structured array of shape (split × source,)
        To be stored as ``h5file.attrs['split']``.

    Raises
    ------
    ValueError
        If there is no split or no source, or if an entry is of another kind or length.
    """
    for split, of_split in split_dict.items():
        if not isinstance(of_split, Mapping):
            raise ValueError(
                f"create_split_array: split {split!r} must be a dict from source to (start, stop); "
                f"got {of_split!r}."
            )
    sources = sorted({source for split in split_dict.values() for source in split})
    if not sources:
        raise ValueError("create_split_array: `split_dict` has to name a split and a source in it.")
    rows = [
        _row(split, source, split_dict[split].get(source))
        for split, source in itertools.product(split_dict, sources)
    ]
    dtype = numpy.dtype(
        [
            ("split", "S", max(len(row[0]) for row in rows)),
            ("source", "S", max(len(row[1]) for row in rows)),
            ("start", numpy.int64),
            ("stop", numpy.int64),
            ("indices", h5py.special_dtype(ref=h5py.Reference)),
            ("available", numpy.bool_),
            ("comment", "S", max(len(row[6]) for row in rows)),
        ]
    )
    return numpy.array(rows, dtype=dtype)


def _row(split: str, source: str, entry: Sequence[Any] | None) -> tuple[Any, ...]:
    names = split.encode("utf-8"), source.encode("utf-8")
    if entry is None:
        return (*names, 0, 0, h5py.Reference(), False, b".")
    if not isinstance(entry, Sequence) or not 2 <= len(entry) <= 4:
        raise ValueError(
            f"create_split_array: source {source!r} of split {split!r} must be (start, stop), "
            f"(start, stop, indices) or (start, stop, indices, comment); got {entry!r}."
        )
    indices, comment = (*entry, None, None)[2:4] if len(entry) < 4 else entry[2:4]
    # Fuel writes '.' for no comment, and so do we: an empty field breaks its pickles.
    comment = (comment or ".").encode("utf-8")
    return (*names, *entry[:2], indices or h5py.Reference(), True, comment)


def split_rows(h5file: h5py.File) -> list[SplitRow]:
    """Read the root attribute ``split``.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    list of SplitRow
        In the order of the file.

    Raises
    ------
    ValueError
        If the file has no such attribute, or one of another kind.
    """
    if "split" not in h5file.attrs:
        raise ValueError(
            f"{h5file.filename} has no root attribute 'split', so it is no data set of Fuel's "
            "format. Write one with `fuel-convert arrays`, or with create_split_array."
        )
    rows = h5file.attrs["split"]
    if not _FIELDS.issubset(getattr(rows, "dtype", numpy.dtype("u1")).names or ()):
        raise ValueError(
            f"{h5file.filename}: the root attribute 'split' must be an array of records with the "
            f"fields {', '.join(sorted(_FIELDS))}; see create_split_array."
        )
    # By columns: files may have thousands of sources in each split, and records are slow.
    texts = [
        [_text(value) for value in rows[name].tolist()] for name in ("split", "source", "comment")
    ]
    numbers = [rows[name].tolist() for name in ("start", "stop", "indices", "available")]
    return [
        SplitRow(split, source, start, stop, indices, bool(available), comment)
        for split, source, comment, start, stop, indices, available in zip(
            *texts, *numbers, strict=True
        )
    ]


def get_all_splits(h5file: h5py.File) -> tuple[str, ...]:
    """List the splits of a file.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    tuple of str
        In the order in which the file names them.
    """
    return tuple(dict.fromkeys(row.split for row in split_rows(h5file)))


def get_all_sources(h5file: h5py.File) -> tuple[str, ...]:
    """List the sources of a file, in whatever split.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    tuple of str
        In the order in which the file names them.
    """
    return tuple(dict.fromkeys(row.source for row in split_rows(h5file)))


def get_provided_sources(h5file: h5py.File, split: str) -> tuple[str, ...]:
    """List the sources that are available in one split.

    Parameters
    ----------
    h5file : h5py.File
        An open file.
    split : str
        Name of the split.

    Returns
    -------
    tuple of str
        In the order in which the file names them.

    Raises
    ------
    ValueError
        If there is no such split.
    """
    return provided_sources(h5file, [split])[0]


def provided_sources(h5file: h5py.File, splits: Sequence[str]) -> list[tuple[str, ...]]:
    """List the sources that are available in each of some splits.

    Parameters
    ----------
    h5file : h5py.File
        An open file.
    splits : sequence of str
        Names of splits.

    Returns
    -------
    list of tuple of str
        For each split what `get_provided_sources` says of it.

    Raises
    ------
    ValueError
        If one of them is not in the file.
    """
    provided: dict[str, list[str]] = {}
    for row in split_rows(h5file):
        provided.setdefault(row.split, []).extend([row.source] if row.available else [])
    for split in splits:
        if split not in provided:
            near = nearest_name(split, tuple(provided))
            raise ValueError(f"{h5file.filename} has no split {split!r}.{near}")
    return [tuple(provided[split]) for split in splits]


def get_vlen_sources(h5file: h5py.File) -> list[str]:
    """List the ragged sources of a file, those that have shapes.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    list of str
        Variable-length sources without shapes are not in it: their examples stay flat.

    Raises
    ------
    ValueError
        If a source has shapes and more than one dimension.
    """
    return [source for source, (is_ragged, _) in describe_sources(h5file).items() if is_ragged]


def get_axis_labels(h5file: h5py.File) -> dict[str, tuple[str, ...] | None]:
    """Read the axis labels of a file.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    dict
        Source name → its labels, one for each axis, ``''`` for an axis without a label. None if
        no axis of the source has one.
    """
    return {source: labels for source, (_, labels) in describe_sources(h5file).items()}


def describe_sources(h5file: h5py.File) -> dict[str, tuple[bool, tuple[str, ...] | None]]:
    """Tell of each source whether it is ragged, and its axis labels.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    dict
        Source name → whether it has shapes, and what `get_axis_labels` says of it.

    Raises
    ------
    ValueError
        If a source is not there, or has shapes that do not fit or more than one dimension.
    """
    described = {}
    for source in get_all_sources(h5file):
        dataset = _source(h5file, source)
        attached = scales(dataset)
        labels = dimension_labels(dataset)
        is_ragged = "shapes" in attached
        if is_ragged and dataset.ndim > 1:
            raise ValueError(
                f"{h5file.filename}: source {source!r} has shapes, so it must have one "
                f"dimension; it has {dataset.ndim}."
            )
        if is_ragged and "shape_labels" in attached:
            labels += tuple(_text(label) for label in attached["shape_labels"][()])
        if is_ragged:
            _check_shapes(dataset, attached)
        described[source] = is_ragged, labels if any(labels) else None
    return described


def _check_shapes(dataset: h5py.Dataset, attached: Mapping[str, h5py.Dataset]) -> None:
    """Check that each example of a ragged source has a shape, with a size for each label."""
    shapes, source = attached["shapes"], dataset.name.lstrip("/")
    who = f"{dataset.file.filename}: the shapes of source {source!r}, in {shapes.name},"
    if shapes.ndim != 2:
        raise ValueError(f"{who} must be of shape (example, axis); they are {shapes.shape}.")
    if len(shapes) < len(dataset):
        raise ValueError(
            f"{who} are of {len(shapes)} examples, and the source has {len(dataset)}. Write a "
            "shape for each example."
        )
    labels = attached.get("shape_labels")
    if labels is not None and labels.size != shapes.shape[1]:
        raise ValueError(
            f"{who} have {shapes.shape[1]} axes, and there are {labels.size} labels in "
            f"{labels.name}. Write a label for each axis."
        )


def _source(h5file: h5py.File, source: str) -> h5py.Dataset:
    try:
        found = h5file[source]
    except KeyError as error:
        raise ValueError(
            f"{h5file.filename}: the attribute 'split' names a source {source!r}, and there is no "
            f"such data set ({error.args[0]}).{nearest_name(source, h5file)}"
        ) from error
    if not isinstance(found, h5py.Dataset) or not found.ndim:
        raise ValueError(
            f"{h5file.filename}: the attribute 'split' names a source {source!r}, which must be a "
            f"data set with the examples as its first axis; it is {found!r}."
        )
    return found


# These two read the attributes themselves: the functions of HDF5 for them end the process, or never
# come back, where a file is damaged.


def dimension_labels(dataset: h5py.Dataset) -> tuple[str, ...]:
    """Read the labels of the axes of a data set.

    Parameters
    ----------
    dataset : h5py.Dataset
        Any data set.

    Returns
    -------
    tuple of str
        One for each axis, ``''`` for an axis without a label.
    """
    labels = dataset.attrs.get("DIMENSION_LABELS", ())
    found = [_text(label) for label in labels][: dataset.ndim]
    return (*found, *[""] * (dataset.ndim - len(found)))


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value or "")


def scales(dataset: h5py.Dataset, axis: int = 0) -> dict[str, h5py.Dataset]:
    """Find the dimension scales of an axis.

    Parameters
    ----------
    dataset : h5py.Dataset
        Any data set.
    axis : int, optional
        Which axis.

    Returns
    -------
    dict of str to h5py.Dataset
        By the names that they have as scales, in the order in which they were attached.
    """
    attached = dataset.attrs.get("DIMENSION_LIST", ())
    references = attached[axis] if len(attached) > axis else ()
    found = [dataset.file[reference] for reference in references]
    return {_text(scale.attrs.get("NAME", b"")): scale for scale in found}


def get_subsets(
    h5file: h5py.File, splits: Iterable[str], sources: Iterable[str], keep_order: bool = False
) -> list[Subset]:
    """Find the examples that splits select from each source.

    Parameters
    ----------
    h5file : h5py.File
        An open file.
    splits : iterable of str
        Names of splits. Their examples are united.
    sources : iterable of str
        Names of sources.
    keep_order : bool, optional
        Whether to keep the order of `splits`, and the order and repetitions of indices in a split.

    Returns
    -------
    list of Subset
        One for each source.

    Raises
    ------
    ValueError
        If a split does not have a source, or selects examples that are not in the file.
    """
    rows = {(row.split, row.source): row for row in split_rows(h5file)}
    subsets = []
    for source in sources:
        num_examples = len(_source(h5file, source))
        parts = []
        for split in splits:
            row = rows.get((split, source))
            if row is None or not row.available:
                provided = get_provided_sources(h5file, split)
                raise ValueError(
                    f"{h5file.filename}: split {split!r} has no source {source!r}."
                    f"{nearest_name(source, provided)}"
                )
            parts.append(_row_subset(h5file, row, num_examples, keep_order))
        # In pairs: one after the other would copy the first indices once for each split.
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [one + two for one, two in pairs] + parts[len(parts) // 2 * 2 :]
        subsets.append(parts[0])
    return subsets


def count_examples(h5file: h5py.File, row: SplitRow) -> int:
    """Count the examples that a split selects from a source, each once.

    Parameters
    ----------
    h5file : h5py.File
        An open file.
    row : SplitRow
        What it says of the split and the source.

    Returns
    -------
    int
        As many as a data set of this split has, if nothing else is asked for.
    """
    return len(numpy.unique(h5file[row.indices][()])) if row.indices else row.stop - row.start


def class_names(h5file: h5py.File) -> list[str] | None:
    """Read what the numbers in the source `targets` stand for.

    Parameters
    ----------
    h5file : h5py.File
        An open file.

    Returns
    -------
    list of str or None
        The texts of the data set ``class_names``; None if there is no such one.
    """
    found = h5file.get("class_names")
    if not isinstance(found, h5py.Dataset) or h5py.check_string_dtype(found.dtype) is None:
        return None
    return [os.fsdecode(name) for name in numpy.atleast_1d(found[()]).ravel()]


def have_same_rows(h5file: h5py.File, splits: Iterable[str], sources: Sequence[str]) -> bool:
    """Tell whether each split selects the same of all sources, without reading indices.

    Parameters
    ----------
    h5file : h5py.File
        An open file.
    splits : iterable of str
        Names of splits.
    sources : sequence of str
        Names of sources that all of them have.

    Returns
    -------
    bool
        True if the rows of each split have the same bounds, or refer to the same indices.
    """
    rows = {(row.split, row.source): row for row in split_rows(h5file)}

    def selection(split: str, source: str) -> Any:
        row = rows[split, source]
        return h5file[row.indices] if row.indices else (row.start, row.stop)

    return all(
        selection(split, source) == first
        for split in splits
        for first in [selection(split, sources[0])]
        for source in sources[1:]
    )


def _row_subset(h5file: h5py.File, row: SplitRow, num_examples: int, keep_order: bool) -> Subset:
    selection = h5file[row.indices][()] if row.indices else slice(row.start, row.stop)
    try:
        return Subset(selection, num_examples, keep_order=keep_order)
    except ValueError as error:
        raise ValueError(
            f"{h5file.filename}: split {row.split!r}, source {row.source!r}: {error}"
        ) from error
