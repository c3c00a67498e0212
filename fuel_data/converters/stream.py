"""Any stream, saved as an HDF5 file: what it costs to prepare the data is paid once."""

import argparse
import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy

from fuel_data.axes import examples_first
from fuel_data.converters.arrays import default_labels
from fuel_data.converters.base import UsageError, fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.utils.parsers import positive
from fuel_data.utils.progress import progress_bar

SPLITS = ("train", "valid", "test")
PIPELINES_ATTRIBUTE = "fuel_convert_pipelines"
DESCRIPTION = """\
Save streams as an HDF5 file, so that what it costs to prepare the data is paid
once. A RECIPE is module:function or file.py:function, as fuel-server takes it;
the function builds a stream and returns it. Of a stream of batches every
example is saved by itself. Examples of different shapes become a ragged
source. The axes have the names that the stream says.
"""
EXAMPLES = """\
example:
  fuel-convert stream --train pipelines.py:prepared --argument size=32 -r small.hdf5

"""


def convert_streams(
    streams: Mapping[str, Any],
    output_directory: str | os.PathLike[str],
    output_filename: str = "stream.hdf5",
    *,
    epochs: int = 1,
    num_examples: int | None = None,
    inputs: Sequence[str] = (),
) -> tuple[str]:
    """Save streams.

    The examples are kept in temporary files beside the output meanwhile, so they need not fit into
    memory; texts are kept in memory.

    Parameters
    ----------
    streams : dict of str to AbstractDataStream
        Split → its stream, of examples or of batches. The splits of a source must have one dtype.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    epochs : int, optional
        How many epochs of each stream to save, one after the other.
    num_examples : int, optional
        How many examples of each to save at most; needed for a stream without end.
    inputs : sequence of str, optional
        Files to name in the output, with their digests.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    ValueError
        If a stream has no examples, the sources of a batch have different lengths, or the dtype of
        a source changes.
    """
    output = os.path.join(output_directory, output_filename)
    with contextlib.ExitStack() as open_files:

        def new_file() -> IO[bytes]:
            # It has no name, so nothing stays of it whatever happens.
            return open_files.enter_context(tempfile.TemporaryFile(dir=output_directory))

        spools = {
            split: _drain(stream, split, new_file, epochs, num_examples)
            for split, stream in streams.items()
        }
        shapes = _shapes(spools)
        data = [
            (split, source, spool.values(is_ragged=len(shapes[source]) > 1))
            for split, of_split in spools.items()
            for source, spool in of_split.items()
        ]
        total = sum(spool.nbytes for of_split in spools.values() for spool in of_split.values())
        with new_hdf5_file(output) as h5file, progress_bar(output_filename, total) as progress:
            fill_hdf5_file(h5file, data, _all_labels(streams, shapes), progress)
            h5file.attrs[PIPELINES_ATTRIBUTE] = numpy.bytes_(_describe(streams).encode("utf-8"))
            record_inputs(h5file, inputs)
    return (output,)


def _describe(streams: Mapping[str, Any]) -> str:
    pipelines = {
        split: {"pipeline": repr(stream), "digest": stream.digest()}
        for split, stream in streams.items()
    }
    return json.dumps(pipelines, sort_keys=True)


def _drain(
    stream: Any,
    split: str,
    new_file: Callable[[], IO[bytes]],
    epochs: int,
    num_examples: int | None,
) -> dict[str, "_Spool"]:
    spools = {
        source: _Spool(f"split {split!r}, source {source!r}", new_file())
        for source in stream.sources
    }
    left, count = num_examples, 0
    try:
        for epoch in range(epochs):
            for batch in _batches(stream, split, epoch, left):
                for spool, values in zip(spools.values(), batch, strict=True):
                    spool.add(values)
                left = None if left is None else left - len(batch[0])
                count += len(batch[0])
    except Exception as error:
        error.add_note(f"The stream of split {split!r} had given {count:,} examples before.")
        raise
    if not all(spool.shapes for spool in spools.values()):
        raise ValueError(f"The stream of split {split!r} gives no examples: {stream!r}.")
    return spools


def _batches(stream: Any, split: str, epoch: int, left: int | None) -> Iterator[list[Any]]:
    """Go through an epoch in batches, of at most so many examples in all."""
    labels = [(stream.axis_labels or {}).get(source) for source in stream.sources]
    with contextlib.closing(stream.get_epoch_iterator(epoch=epoch)) as iterator:
        while left is None or left > 0:
            item = next(iterator, None)
            if item is None:
                return
            if stream.produces_examples:
                batch = [[values] for values in item]
            else:
                batch = [examples_first(*pair) for pair in zip(item, labels, strict=True)]
                _check_lengths(stream.sources, batch, split)
            batch = [values[:left] for values in batch]
            left = None if left is None else left - len(batch[0])
            yield batch


def _check_lengths(sources: Sequence[str], batch: Sequence[Any], split: str) -> None:
    lengths = {source: len(values) for source, values in zip(sources, batch, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"The sources of a batch of split {split!r} have different numbers of examples: "
            f"{lengths}."
        )


def _shapes(spools: Mapping[str, Mapping[str, "_Spool"]]) -> dict[str, set[tuple[int, ...]]]:
    """Collect the shapes of the examples of each source, in all splits."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for of_split in spools.values():
        for source, spool in of_split.items():
            found.setdefault(source, set()).update(shape for _, shape in spool.shapes)
    return found


def _all_labels(
    streams: Mapping[str, Any], shapes: Mapping[str, set[tuple[int, ...]]]
) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for stream in streams.values():
        for source in stream.sources:
            ndim = 1 + len(min(shapes[source]))
            labels = (stream.axis_labels or {}).get(source)
            inner = [label for label in labels or () if label != "batch"]
            fits = labels is not None and len(inner) + 1 == ndim
            found.setdefault(source, ("batch", *inner) if fits else default_labels(ndim))
    return found


class _Spool:
    """Examples of one source, kept in a file until all are there.

    Parameters
    ----------
    who : str
        Split and source, for errors.
    file : file
        An empty one, open for writing and reading bytes.

    Attributes
    ----------
    shapes : list of (int, tuple of int)
        How many examples of which shape follow each other.
    nbytes : int
        Number of bytes in the file.
    """

    def __init__(self, who: str, file: IO[bytes]) -> None:
        self.who = who
        self.shapes: list[tuple[int, tuple[int, ...]]] = []
        self.nbytes = 0
        self._file = file
        self._dtype: numpy.dtype | None = None
        self._texts: list[str | bytes] = []

    def add(self, batch: Any) -> None:
        """Keep the examples of a batch."""
        if isinstance(batch, numpy.ndarray) and batch.dtype.kind not in "OSU":
            self._add_array(batch)
            return
        for item in batch:
            if isinstance(item, (str, bytes)):
                self._texts.append(str(item) if isinstance(item, str) else bytes(item))
                self._count(1, ())
                continue
            self._add_array(self._array(item)[None])

    def _array(self, item: Any) -> numpy.ndarray:
        # An empty list says nothing of its dtype.
        is_empty = isinstance(item, (list, tuple)) and not item
        try:
            return numpy.asarray(item, (self._dtype or int) if is_empty else None)
        except ValueError as error:
            raise ValueError(f"An example of {self.who} is no array: {error}") from error

    def _add_array(self, batch: numpy.ndarray) -> None:
        if batch.dtype.hasobject:
            found = type(batch.ravel()[0]).__name__ if batch.size else "nothing"
            raise ValueError(
                f"The examples of {self.who} are objects of Python, such as {found}, which HDF5 "
                "has not. Put Mapping over the stream, and give arrays, numbers or texts."
            )
        if self._dtype is None:
            self._dtype = batch.dtype
        if batch.dtype != self._dtype:
            raise ValueError(
                f"The examples of {self.who} must all have one dtype; got {batch.dtype} after "
                f"{self._dtype}. Put Cast over the stream."
            )
        # Dates have no buffer.
        self._file.write(batch.tobytes())
        self.nbytes += batch.nbytes
        self._count(len(batch), batch.shape[1:])

    def _count(self, number: int, shape: tuple[int, ...]) -> None:
        if self._texts and self._dtype is not None:
            raise ValueError(f"The examples of {self.who} are texts and numbers; give one kind.")
        if number and self.shapes and self.shapes[-1][1] == shape:
            self.shapes[-1] = (self.shapes[-1][0] + number, shape)
        elif number:
            self.shapes.append((number, shape))

    def values(self, is_ragged: bool) -> numpy.ndarray:
        """Give all examples, those in the file as a map of it."""
        number = sum(count for count, _ in self.shapes)
        if self._texts:
            objects = numpy.empty(number, dtype=object)
            objects[:] = self._texts
            return objects
        assert self._dtype is not None
        self._file.flush()
        # An empty file cannot be mapped.
        flat = (
            numpy.memmap(self._file, self._dtype, "r")
            if self.nbytes
            else numpy.empty(0, self._dtype)
        )
        if not is_ragged:
            return flat.reshape(number, *self.shapes[0][1])
        return self._ragged(flat, number)

    def _ragged(self, flat: numpy.ndarray, number: int) -> numpy.ndarray:
        flat = flat.view(numpy.ndarray)
        objects = numpy.empty(number, dtype=object)
        index = start = 0
        for count, shape in self.shapes:
            size = math.prod(shape)
            for _ in range(count):
                objects[index] = flat[start : start + size].reshape(shape)
                index, start = index + 1, start + size
        return objects


def convert_from_arguments(
    directory: str,
    output_directory: str,
    output_filename: str = "stream.hdf5",
    **arguments,
) -> tuple[str]:
    """Save streams, with arguments as the command line has them; see `convert_streams`.

    Parameters
    ----------
    directory : str
        Folder in which the files of recipes are, if they are not in the current one.
    output_directory, output_filename : str
        As for `convert_streams`.
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
    RecipeError
        If a recipe names no stream, or its code fails: then with the lines of that code.
    """
    # It brings zmq, which other converters do without.
    from fuel_data.server.recipe import Recipe, failures_of_recipes, parse_arguments

    named = [(split, arguments[split]) for split in SPLITS if arguments[split]]
    named += arguments["split"]
    if not named or len(dict(named)) < len(named):
        raise UsageError("Give the recipe of each split once, by --train RECIPE and the like.")
    if "" in dict(named):
        raise UsageError("--split needs a name, as in --split small RECIPE.")
    given = parse_arguments(arguments["argument"])
    recipes = {split: Recipe(_find(directory, target), given) for split, target in named}
    files = [recipe.find_file() for recipe in recipes.values() if recipe.path is not None]
    with failures_of_recipes(), contextlib.ExitStack() as at_end:
        streams = {}
        for split, recipe in recipes.items():
            streams[split] = at_end.enter_context(contextlib.closing(recipe.build()))
        return convert_streams(
            streams,
            output_directory,
            output_filename,
            epochs=arguments["epochs"],
            num_examples=arguments["num_examples"],
            inputs=list(dict.fromkeys(files)),
        )


def _find(directory: str, target: str) -> str:
    place = os.path.join(directory, target.rpartition(":")[0])
    return os.path.join(directory, target) if os.path.isfile(place) else target


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
    for split in SPLITS:
        text = f"recipe of the split {split}"
        subparser.add_argument(f"--{split}", metavar="RECIPE", help=text)
    subparser.add_argument(
        "--split",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "RECIPE"),
        help="a split of another name and its recipe; may be given several times",
    )
    subparser.add_argument(
        "--argument",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of all the functions; the value is JSON or YAML",
    )
    text = "how many epochs of each stream to save, by default 1"
    subparser.add_argument("--epochs", type=positive(int), default=1, help=text)
    text = "how many examples of each split to save at most"
    subparser.add_argument("--num-examples", type=positive(int), metavar="NUMBER", help=text)
    return convert_from_arguments
