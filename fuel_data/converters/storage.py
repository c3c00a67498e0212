"""How sources are stored in HDF5: in one piece, or compressed in chunks.

In one piece is the default: such values are read from a memory map, in any order at the speed of
memory. Compressed ones have to be unpacked, a chunk at a time; the smaller a chunk, the less is
unpacked in vain for one example of it. `docs/hdf5.rst` has the measurements.
"""

import contextlib
import dataclasses
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import h5py
import numpy

logger = logging.getLogger(__name__)

#: Bytes of a chunk, of as many whole examples as fit, if nothing else is asked for.
CHUNK_BYTES = 3 * 2**10
#: Compression → the levels that it takes and the one that is taken if none is asked for.
LEVELS: dict[str, tuple[int, int, int] | None] = {
    "gzip": (0, 9, 4),
    "lzf": None,
    "zstd": (1, 22, 3),
    "blosc": (0, 9, 5),
}


@dataclasses.dataclass(frozen=True)
class Storage:
    """How a source is stored.

    Parameters
    ----------
    compression : {None, 'gzip', 'lzf', 'zstd', 'blosc'}, optional
        How it is compressed; not at all by default. gzip and lzf are always there where h5py is.
        zstd and blosc (LZ4 inside, the fastest) need hdf5plugin, to read it too.
    level : int, optional
        How hard to try: 0 to 9 for gzip and blosc, 1 to 22 for zstd.
    chunk_examples : int, optional
        Number of examples of a chunk. By default as many as fit into 3 KiB, at least one, if the
        source is compressed; otherwise all lie in one piece.

    Raises
    ------
    ValueError
        If there is no such compression or level, or a chunk has no example.

    Examples
    --------
    >>> Storage("gzip").options((60000, 28, 28), numpy.dtype("uint8"))["chunks"]
    (3, 28, 28)
    """

    compression: str | None = None
    level: int | None = None
    chunk_examples: int | None = None

    def __post_init__(self) -> None:
        if self.compression is not None and self.compression not in LEVELS:
            raise ValueError(
                f"Compression must be one of {', '.join(LEVELS)}; got {self.compression!r}."
            )
        levels = LEVELS[self.compression] if self.compression else None
        if self.level is not None and (levels is None or not levels[0] <= self.level <= levels[1]):
            takes = f"takes levels {levels[0]} to {levels[1]}" if levels else "takes no level"
            raise ValueError(f"Compression {self.compression} {takes}; got {self.level}.")
        if self.chunk_examples is not None and self.chunk_examples < 1:
            raise ValueError(f"A chunk has at least one example; got {self.chunk_examples}.")

    @classmethod
    def parse(cls, text: str | None, chunk_examples: int | None = None) -> "Storage":
        """Read what a command line says.

        Parameters
        ----------
        text : str or None
            Such as ``'gzip'`` or ``'zstd:7'``.
        chunk_examples : int, optional
            As for the class.

        Returns
        -------
        Storage

        Raises
        ------
        ValueError
            If it cannot be read.
        """
        name, colon, level = (text or "").partition(":")
        if colon and not level.isdecimal():
            raise ValueError(f"Compression is NAME or NAME:LEVEL, such as gzip:9; got {text!r}.")
        return cls(name or None, int(level) if colon else None, chunk_examples)

    def options(self, shape: tuple[int, ...], dtype: numpy.dtype) -> dict[str, Any]:
        """Give the arguments of ``h5py.Group.create_dataset``.

        Parameters
        ----------
        shape : tuple of int
            Of the source.
        dtype : dtype
            Of the source.

        Returns
        -------
        dict
            Empty if it lies in one piece, as what has no values must.

        Raises
        ------
        ImportError
            If hdf5plugin is needed and not there.
        """
        if math.prod(shape) == 0 or (self.compression is None and self.chunk_examples is None):
            return {}
        example = max(1, math.prod(shape[1:]) * dtype.itemsize)
        rows = self.chunk_examples or max(1, CHUNK_BYTES // example)
        return {"chunks": (min(rows, shape[0]), *shape[1:]), **self._filter(dtype)}

    def _filter(self, dtype: numpy.dtype) -> dict[str, Any]:
        if self.compression is None:
            return {}
        levels = LEVELS[self.compression]
        level = self.level if self.level is not None or levels is None else levels[2]
        # Bytes of equal weight beside each other: numbers of several bytes pack better so.
        shuffle = dtype.kind in "iufc" and dtype.itemsize > 1
        if self.compression in ("gzip", "lzf"):
            options = {} if level is None else {"compression_opts": level}
            return {"compression": self.compression, "shuffle": shuffle, **options}
        plugin = _hdf5plugin(self.compression)
        if self.compression == "zstd":
            return {"shuffle": shuffle, **plugin.Zstd(clevel=level)}
        kind = plugin.Blosc.SHUFFLE if shuffle else plugin.Blosc.NOSHUFFLE
        return dict(plugin.Blosc(cname="lz4", clevel=level, shuffle=kind))


def _hdf5plugin(compression: str) -> Any:
    try:
        import hdf5plugin
    except ImportError as error:
        raise ImportError(
            f"Compression {compression!r} needs hdf5plugin: pip install hdf5plugin. "
            "Or take gzip, which is always there."
        ) from error
    return hdf5plugin


_DEFAULT: ContextVar[Storage | None] = ContextVar("storage", default=None)


@contextlib.contextmanager
def default_storage(storage: Storage) -> Iterator[None]:
    """Choose how converters store what says nothing else, while the block runs.

    Parameters
    ----------
    storage : Storage
        For all sources.

    Yields
    ------
    None
        Every `fill_hdf5_file` inside takes it.
    """
    token = _DEFAULT.set(storage)
    try:
        yield
    finally:
        _DEFAULT.reset(token)


def storage_of(source: str, given: Mapping[str, Storage] | None) -> Storage:
    """Tell how a source is to be stored.

    Parameters
    ----------
    source : str
        Its name.
    given : dict of str to Storage, or None
        What was asked for: for some sources by name, or nothing.

    Returns
    -------
    Storage
    """
    return (given or {}).get(source) or _DEFAULT.get() or Storage()


def warn_of_what_is_not_compressed(h5file: h5py.File, sources: Iterable[str], asked: str) -> None:
    """Log a warning that names the sources of which HDF5 would compress only where values lie.

    Parameters
    ----------
    h5file : h5py.File
        The file, with these sources.
    sources : iterable of str
        Those that were to be compressed.
    asked : str
        By whom and what, the beginning of the warning.
    """
    left = [source for source in sources if _has_variable_length(h5file.get(source))]
    if left:
        logger.warning(
            "%s does nothing for %s: HDF5 does not compress values of variable length. To have "
            "them smaller, give all examples one shape, or keep files that are packed already; "
            "of images, fuel-convert image_folder does so by --size and --encoded.",
            asked,
            ", ".join(left),
        )


def _has_variable_length(dataset: Any) -> bool:
    if not isinstance(dataset, h5py.Dataset):
        return False
    text = h5py.check_string_dtype(dataset.dtype)
    return h5py.check_vlen_dtype(dataset.dtype) is not None or (
        text is not None and text.length is None
    )
