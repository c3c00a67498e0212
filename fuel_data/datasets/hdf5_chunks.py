"""Reading examples from chunks of HDF5 data sets, with a cache of bounded size."""

import math
import threading
from typing import Any

import h5py
import numpy

#: Bytes that chunks of one data set may take in memory, by default.
CACHE_BYTES = 2**27
#: With more chunks, keeping count of them takes more memory than they are worth.
MAX_CHUNKS = 10_000_000


def read_values(dataset: h5py.Dataset, selection: Any) -> Any:
    """Let h5py read; damage is one kind of error, which names the place.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.
    selection : int, slice or array of int
        Which examples.

    Returns
    -------
    array, or one example

    Raises
    ------
    OSError
        If they cannot be read.
    """
    try:
        return dataset[selection]
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise OSError(
            f"{dataset.file.filename}: {dataset.name} cannot be read: {error}. The file is damaged "
            "there, or of a kind that h5py does not read."
        ) from error


class ChunkedValues:
    """Values in chunks, of which the last used ones are kept in memory.

    A chunk is here all values of some examples that follow each other, however HDF5 cuts the other
    axes. HDF5 reads and unpacks a whole chunk at the speed of the decompression alone, and unpacks
    the same chunk again for every index of a scattered selection that does not fit into its own
    cache; so whole chunks are read, each at most once for a request.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set in chunks, of a type without references to objects.
    max_bytes : int, optional
        How much memory the cache may take; one chunk is always kept.
    """

    def __init__(self, dataset: h5py.Dataset, max_bytes: int = CACHE_BYTES) -> None:
        self._dataset = dataset
        self._rows = max(1, min(dataset.chunks[0], len(dataset)))
        num_chunks = -(-len(dataset) // self._rows)
        num_slots = min(num_chunks, max(1, max_bytes // _num_bytes(dataset)))
        # What is not used takes no memory.
        self._slots = numpy.empty((num_slots, self._rows, *dataset.shape[1:]), dataset.dtype)
        self._examples = self._slots.reshape(num_slots * self._rows, *dataset.shape[1:])
        self._slot_of = numpy.full(num_chunks, -1, dtype=numpy.int64)
        self._chunk_in = numpy.full(num_slots, -1, dtype=numpy.int64)
        # Numbers of requests; at first negative, so that slots are taken in the order of memory.
        self._last_used = numpy.arange(-num_slots, 0)
        self._num_requests = 0
        self._lock = threading.Lock()

    @property
    def num_rows(self) -> int:
        """Number of examples of a chunk."""
        return self._rows

    @property
    def holds_all(self) -> bool:
        """Whether all chunks may be in memory at once."""
        return len(self._chunk_in) == len(self._slot_of)

    @property
    def num_cached(self) -> int:
        """Number of chunks that are in memory."""
        return int((self._chunk_in >= 0).sum())

    @property
    def max_cached(self) -> int:
        """Number of chunks that may be in memory."""
        return len(self._chunk_in)

    def read(self, indices: numpy.ndarray) -> numpy.ndarray:
        """Read examples.

        Parameters
        ----------
        indices : int64 array of shape (example,)
            Inside the data set, in any order, with repetitions.

        Returns
        -------
        array
            A copy, in the order of the request.
        """
        chunks, rows = numpy.divmod(indices, self._rows)
        with self._lock:
            slots = self._slot_of[chunks]
            if (slots >= 0).all():
                self._use(slots)
                return self._take(slots, rows)
            wanted, number_of = numpy.unique(chunks, return_inverse=True)
            if len(wanted) <= len(self._chunk_in):
                self._load(wanted)
                return self._take(self._slot_of[chunks], rows)
            return self._read_in_parts(chunks, rows, wanted, number_of)

    def read_range(self, start: int, stop: int) -> numpy.ndarray:
        """Read examples that follow each other.

        Parameters
        ----------
        start, stop : int
            The first one, and the one after the last.

        Returns
        -------
        array
            A copy.
        """
        first, last = start // self._rows, -(-stop // self._rows)
        if last - first > len(self._chunk_in):
            return read_values(self._dataset, slice(start, stop))
        wanted = numpy.arange(first, last)
        with self._lock:
            self._load(wanted)
            found = self._slots[self._slot_of[wanted]]
        whole = found.reshape(-1, *self._examples.shape[1:])
        return whole[start - first * self._rows : stop - first * self._rows]

    def _take(self, slots: numpy.ndarray, rows: numpy.ndarray) -> numpy.ndarray:
        return self._examples.take(slots * self._rows + rows, axis=0, mode="clip")

    def _use(self, slots: numpy.ndarray) -> None:
        self._num_requests += 1
        self._last_used[slots] = self._num_requests

    def _read_in_parts(
        self,
        chunks: numpy.ndarray,
        rows: numpy.ndarray,
        wanted: numpy.ndarray,
        number_of: numpy.ndarray,
    ) -> numpy.ndarray:
        """Read examples of more chunks than fit into memory at once."""
        found = numpy.empty((len(chunks), *self._examples.shape[1:]), self._examples.dtype)
        for first in range(0, len(wanted), len(self._chunk_in)):
            part = wanted[first : first + len(self._chunk_in)]
            self._load(part)
            here = (number_of >= first) & (number_of < first + len(part))
            found[here] = self._take(self._slot_of[chunks[here]], rows[here])
        return found

    def _load(self, wanted: numpy.ndarray) -> None:
        """Bring chunks into memory, in the place of those that were not used for longest."""
        slots = self._slot_of[wanted]
        self._use(slots[slots >= 0])
        missing = wanted[slots < 0]
        if not len(missing):
            return
        oldest = numpy.argpartition(self._last_used, len(missing) - 1)[: len(missing)]
        oldest.sort()
        forgotten = self._chunk_in[oldest]
        self._slot_of[forgotten[forgotten >= 0]] = -1
        self._chunk_in[oldest] = -1
        breaks = (numpy.flatnonzero(numpy.diff(missing) > 1) + 1).tolist()
        for begin, end in zip([0, *breaks], [*breaks, len(missing)], strict=True):
            self._load_run(int(missing[begin]), oldest[begin:end])
        # Only now: an error above must not leave a slot that claims to hold its chunk.
        self._chunk_in[oldest], self._slot_of[missing] = missing, oldest
        self._use(oldest)

    def _load_run(self, chunk: int, slots: numpy.ndarray) -> None:
        """Read chunks that follow each other at once, each into its slot."""
        start = chunk * self._rows
        values = read_values(self._dataset, slice(start, start + len(slots) * self._rows))
        if len(slots) == 1:
            # By far the most of scattered ones, for which a plain number is the fastest index.
            self._slots[int(slots[0]), : len(values)] = values
            return
        num_whole, num_left = divmod(len(values), self._rows)
        num_examples = num_whole * self._rows
        whole = values[:num_examples].reshape(num_whole, *self._slots.shape[1:])
        self._slots[slots[:num_whole]] = whole
        if num_left:
            self._slots[slots[-1], :num_left] = values[num_examples:]


def _num_bytes(dataset: h5py.Dataset) -> int:
    """Count the bytes of all values of the examples of a chunk."""
    num_rows = min(dataset.chunks[0], len(dataset))
    return max(1, num_rows * math.prod(dataset.shape[1:]) * dataset.dtype.itemsize)


def is_in_chunks(dataset: h5py.Dataset, max_bytes: int = CACHE_BYTES) -> bool:
    """Tell whether a data set can be read by its chunks.

    Parameters
    ----------
    dataset : h5py.Dataset
        A data set of an open file.
    max_bytes : int, optional
        How much memory its chunks may take.

    Returns
    -------
    bool
        False for other layouts, for types with references to objects, for what is empty, for more
        chunks than can be kept count of, and for chunks that have many examples and little of each,
        so that all values of these would not fit into the memory.
    """
    return (
        dataset.chunks is not None
        and not dataset.dtype.hasobject
        # Of arrays as a type h5py makes axes.
        and dataset.dtype.subdtype is None
        and math.prod(dataset.shape) > 0
        and len(dataset) <= MAX_CHUNKS * dataset.chunks[0]
        and (dataset.chunks[1:] == dataset.shape[1:] or _num_bytes(dataset) <= max_bytes)
        and dataset.id.get_create_plist().get_layout() == h5py.h5d.CHUNKED
    )


def as_indices(request: slice | numpy.ndarray) -> numpy.ndarray:
    """Write a slice down as indices.

    Parameters
    ----------
    request : slice, or array of int
        A slice with start and stop.

    Returns
    -------
    int64 array of shape (example,)
    """
    if isinstance(request, slice):
        return numpy.arange(request.start, request.stop)
    return request
