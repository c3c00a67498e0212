"""A user's own arrays, from .npz, .npy and CSV files, as one HDF5 file."""

import argparse
import logging
import os
from collections.abc import Callable, Mapping, Sequence

import numpy

from fuel_data.converters.base import UsageError, fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.tables import read_arrays
from fuel_data.exceptions import MissingInputFiles
from fuel_data.randomness import key, permutation
from fuel_data.utils.names import nearest_name
from fuel_data.utils.progress import progress_bar

logger = logging.getLogger(__name__)

Splits = Mapping[str, Sequence[str]]

DESCRIPTION = """\
Turn arrays into an HDF5 file.

An INPUT is
  FILE.npz           one source for each array in it;
  SOURCE=FILE.npy    one source of that name (FILE.npy: of the name of the file);
  FILE.csv[.gz]      one source for each column, of the names in the first line,
                     as an array of shape (example, 1); see --columns.
The first axis of each source is the examples. Whole numbers in a CSV file
become int64 (uint64 if only that holds them), others float64; see --dtype.
The axes are called batch, index (and index_1, index_2, ... if there are more);
see --axis-labels.
"""
EXAMPLES = """\
examples:
  fuel-convert arrays --train train.npz --test test.npz -r my.hdf5
  fuel-convert arrays --train features=x.npy targets=y.npy \\
      --axis-labels features=batch,channel,height,width --dtype targets=uint8
  fuel-convert arrays --all table.csv --fractions train=0.8 test=0.2 \\
      --columns features=width:weight targets=kind

"""
LISTS = (
    ("--all", "INPUT", "inputs that --fractions cuts into splits"),
    (
        "--fractions",
        "NAME=PART",
        "splits and their parts, which add up to 1, of the shuffled examples",
    ),
    (
        "--columns",
        "SOURCE=COLUMNS",
        "sources of columns of CSV files, a,b,c or first:last; other columns are left out, and may "
        "hold text",
    ),
    (
        "--dtype",
        "SOURCE=DTYPE",
        "dtypes of sources; whole numbers that do not fit are an error",
    ),
    (
        "--axis-labels",
        "SOURCE=LABELS",
        "names of the axes of sources, such as batch,channel,height,width",
    ),
)


def convert_arrays(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "arrays.hdf5",
    *,
    splits: Splits,
    fractions: Mapping[str, float] | None = None,
    seed: int = 1,
    columns: Mapping[str, str] | None = None,
    dtypes: Mapping[str, str] | None = None,
    axis_labels: Mapping[str, Sequence[str]] | None = None,
) -> tuple[str]:
    """Convert arrays.

    Parameters
    ----------
    directory : path
        Folder of the input files.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    splits : dict of str to sequence of str
        Split → its inputs: ``'FILE.npz'``, ``'SOURCE=FILE.npy'``, ``'FILE.npy'``, ``'FILE.csv'``.
    fractions : dict of str to float, optional
        Splits to cut the only one of `splits` into, and their parts, which add up to 1. The
        examples are shuffled before.
    seed : int, optional
        Seed of that shuffling, which is the same on every machine.
    columns : dict of str to str, optional
        Source → its columns in CSV files, ``'a,b,c'`` or ``'a:c'``.
    dtypes : dict of str to str, optional
        Source → its dtype. Whole numbers that do not fit are an error.
    axis_labels : dict of str to sequence of str, optional
        Source → a label for each axis; by default batch, index.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If input files are missing.
    ValueError
        If an input cannot be read, a source stands twice or is not known, or if lengths, dtypes
        or shapes do not fit together.
    """
    paths = _find_inputs(directory, splits)
    if columns and not any(path.endswith((".csv", ".csv.gz")) for path in paths):
        raise ValueError("--columns is for CSV files, and there is none among the inputs.")
    arrays = {
        split: _read_split(split, directory, inputs, columns) for split, inputs in splits.items()
    }
    _check_names(arrays, dtypes, "--dtype")
    _check_names(arrays, axis_labels, "--axis-labels")
    _tell_what_is_lacking(arrays)
    if fractions is not None:
        arrays = _cut(arrays, fractions, seed)
    data = [
        (split, source, _cast(source, values, (dtypes or {}).get(source)))
        for split, of_split in arrays.items()
        for source, values in of_split.items()
    ]
    labels = {source: default_labels(values.ndim) for _, source, values in data}
    output = os.path.join(output_directory, output_filename)
    total = sum(values.nbytes for _, _, values in data)
    with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
        fill_hdf5_file(h5file, data, {**labels, **(axis_labels or {})}, progress)
        record_inputs(h5file, paths)
    return (output,)


def _path(directory: str | os.PathLike[str], text: str) -> tuple[str | None, str]:
    """Take an input apart into the name of a source, if there is one, and the path of its file."""
    source, equals, file = text.partition("=")
    if not equals or os.path.isfile(os.path.join(directory, text)):
        return None, os.path.join(directory, text)
    return source, os.path.join(directory, file)


def _find_inputs(directory: str | os.PathLike[str], splits: Splits) -> list[str]:
    paths = [_path(directory, text)[1] for inputs in splits.values() for text in inputs]
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise MissingInputFiles("These files are not there", missing)
    return list(dict.fromkeys(paths))


def _read_split(
    split: str,
    directory: str | os.PathLike[str],
    inputs: Sequence[str],
    columns: Mapping[str, str] | None,
) -> dict[str, numpy.ndarray]:
    found: dict[str, numpy.ndarray] = {}
    for text in inputs:
        source, path = _path(directory, text)
        for name, values in read_arrays(path, source, columns).items():
            if name in found:
                raise ValueError(f"{path}: split {split!r} has source {name!r} from another file.")
            found[name] = values
    return found


def _check_names(
    arrays: Mapping[str, Mapping[str, numpy.ndarray]], given: Mapping | None, argument: str
) -> None:
    known = {source for of_split in arrays.values() for source in of_split}
    for name in given or ():
        if name not in known:
            raise ValueError(f"{argument}: there is no source {name!r}.{nearest_name(name, known)}")


def _tell_what_is_lacking(arrays: Mapping[str, Mapping[str, numpy.ndarray]]) -> None:
    """Warn of splits without a source that another has, which may be meant or a slip."""
    known = list(dict.fromkeys(source for of_split in arrays.values() for source in of_split))
    lacking = [
        f"split {split!r} lacks {', '.join(repr(name) for name in known if name not in of_split)}"
        for split, of_split in arrays.items()
        if len(of_split) < len(known)
    ]
    if lacking:
        logger.warning(
            "fuel-convert arrays: not every split has every source: %s. If they are to be the "
            "same, give them the same names, by SOURCE=FILE.npy or --columns.",
            "; ".join(lacking),
        )


def _cut(
    arrays: Mapping[str, Mapping[str, numpy.ndarray]], fractions: Mapping[str, float], seed: int
) -> dict[str, dict[str, numpy.ndarray]]:
    if abs(sum(fractions.values()) - 1) > 1e-6 or min(fractions.values()) <= 0:
        raise ValueError(f"--fractions must be positive and add up to 1; got {dict(fractions)}.")
    (of_split,) = arrays.values()
    lengths = {source: len(values) for source, values in of_split.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"All sources must have equal lengths; got {lengths}.")
    num_examples = next(iter(lengths.values()))
    order = permutation(key(seed, "fuel-convert arrays", 0), num_examples)
    bounds = numpy.rint(numpy.cumsum(list(fractions.values())) * num_examples).astype(int)
    parts = dict(zip(fractions, numpy.split(order, bounds[:-1]), strict=True))
    empty = [split for split, part in parts.items() if len(part) == 0]
    if empty:
        raise ValueError(f"--fractions: {num_examples} examples leave none for {', '.join(empty)}.")
    return {
        split: {source: values[part] for source, values in of_split.items()}
        for split, part in parts.items()
    }


def _cast(source: str, values: numpy.ndarray, dtype: str | None) -> numpy.ndarray:
    if dtype is None:
        return values
    try:
        wanted = numpy.dtype(dtype)
    except TypeError as error:
        raise ValueError(
            f"--dtype: {source}={dtype} is no dtype of numpy, such as uint8 or float32."
        ) from error
    if not {values.dtype.kind, wanted.kind} <= set("biufc"):
        raise ValueError(
            f"--dtype: source {source!r} is {values.dtype} and cannot become {wanted}: only "
            "numbers are cast, and only to numbers."
        )
    if values.dtype.kind == "c" and wanted.kind != "c":
        raise ValueError(
            f"--dtype: source {source!r} has complex numbers; as {wanted} they would lose a part."
        )
    with numpy.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(wanted)
    if wanted.kind in "fc" and (numpy.isfinite(values) & ~numpy.isfinite(cast)).any():
        raise ValueError(
            f"--dtype: source {source!r} has values too large for {wanted}; they go from "
            f"{numpy.nanmin(values)} to {numpy.nanmax(values)}."
        )
    if wanted.kind in "biu" and not numpy.array_equal(cast, values):
        raise ValueError(
            f"--dtype: source {source!r} has values that {wanted} cannot hold; they go from "
            f"{values.min()} to {values.max()}."
        )
    return cast


def default_labels(ndim: int) -> tuple[str, ...]:
    """Name the axes of a source that has no labels.

    Parameters
    ----------
    ndim : int
        Number of axes, at least 1.

    Returns
    -------
    tuple of str
        ``('batch', 'index')``, or ``('batch', 'index_1', 'index_2', …)`` for more axes.
    """
    if ndim <= 2:
        return ("batch", "index")[:ndim]
    return ("batch", *(f"index_{number}" for number in range(1, ndim)))


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        The converter, with arguments as the command has them.
    """
    subparser.description = DESCRIPTION
    subparser.epilog = EXAMPLES + (subparser.epilog or "")
    for split in ("train", "valid", "test"):
        text = f"inputs of the split {split}"
        subparser.add_argument(f"--{split}", nargs="+", metavar="INPUT", help=text)
    subparser.add_argument(
        "--split",
        nargs="+",
        action="append",
        default=[],
        metavar=("NAME", "INPUT"),
        help="a split of another name and its inputs; may be given several times",
    )
    text = "seed of the shuffling for --fractions, by default 1"
    subparser.add_argument("--seed", type=int, default=1, help=text)
    for argument, metavar, text in LISTS:
        subparser.add_argument(argument, nargs="+", metavar=metavar, help=text)
    return convert_from_arguments


def convert_from_arguments(
    directory: str,
    output_directory: str,
    output_filename: str = "arrays.hdf5",
    **arguments,
) -> tuple[str]:
    """Convert arrays, with arguments as the command line has them; see `convert_arrays`.

    Parameters
    ----------
    directory, output_directory, output_filename : str
        As for `convert_arrays`.
    **arguments
        The other arguments of the command, by their names.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    UsageError
        If the arguments do not fit together.
    """
    fractions = _pairs("--fractions", arguments["fractions"])
    labels = _pairs("--axis-labels", arguments["axis_labels"])
    return convert_arrays(
        directory,
        output_directory,
        output_filename,
        splits=_splits(arguments),
        fractions=None if fractions is None else _numbers(fractions),
        seed=arguments["seed"],
        columns=_pairs("--columns", arguments["columns"]),
        dtypes=_pairs("--dtype", arguments["dtype"]),
        axis_labels=labels and {source: text.split(",") for source, text in labels.items()},
    )


def _splits(arguments: Mapping) -> dict[str, Sequence[str]]:
    named = [(split, arguments[split]) for split in ("train", "valid", "test") if arguments[split]]
    named += [(split, inputs) for split, *inputs in arguments["split"]]
    splits = dict(named)
    if len(splits) < len(named):
        raise UsageError("A split is given twice; give all its inputs at once.")
    if not all(splits) or not all(splits.values()):
        raise UsageError("--split needs a name and at least one input.")
    if (arguments["all"] is None) != (arguments["fractions"] is None):
        raise UsageError(
            "--all and --fractions go together: they cut inputs into splits. Inputs that are one "
            "split are given by --train, --valid, --test or --split NAME."
        )
    if bool(splits) == bool(arguments["all"]):
        raise UsageError(
            "Give the inputs of each split (--train, --valid, --test, --split), or those of all "
            "(--all) with --fractions."
        )
    return splits or {"all": arguments["all"]}


def _pairs(argument: str, texts: Sequence[str] | None) -> dict[str, str] | None:
    if texts is None:
        return None
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in pairs:
            raise UsageError(f"{argument} takes NAME=VALUE, each name once; got {text!r}.")
        pairs[name] = value
    return pairs


def _numbers(fractions: Mapping[str, str]) -> dict[str, float]:
    try:
        return {split: float(text) for split, text in fractions.items()}
    except ValueError as error:
        raise UsageError(f"--fractions takes NAME=NUMBER: {error}") from error
