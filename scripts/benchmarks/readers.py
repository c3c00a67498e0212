"""What `hdf5.py` times: the same examples from HDF5, memory maps, tar files and folders."""

from __future__ import annotations

import argparse
import gzip
import io
import tarfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy

BATCH, JPEG_BATCH, NUM_JPEGS = 500, 50, 3000
#: Readers that take minutes for an epoch read a part of one, and say what the whole would take.
PARTS = {"h5py-gzip": 20, "h5py-zstd": 20, "torch-h5py": 4, "grain": 20}
PARTS |= {"firebrick-gzip-small": 8, "firebrick-zstd-small": 8}


def prepare(folder: Path, directory: str | None) -> None:
    """Write all files that the readers read.

    Parameters
    ----------
    folder : Path
        Where to.
    directory : str or None
        Folder of the IDX file of images.
    """
    from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
    from fuel_data.converters.storage import Storage

    images = read_images(directory)
    for name, storage in {
        "plain": Storage(),
        "chunks": Storage(chunk_examples=20),
        "gzip": Storage("gzip"),
        "zstd": Storage("zstd"),
    }.items():
        with new_hdf5_file(folder / f"{name}.hdf5") as h5file:
            fill_hdf5_file(h5file, [("train", "x", images)], storage=storage)
    numpy.save(folder / "images.npy", images)
    _write_tar(folder / "images.tar", (("bin", image.tobytes()) for image in images))
    jpegs = [_jpeg(number) for number in range(NUM_JPEGS)]
    with new_hdf5_file(folder / "jpegs.hdf5") as h5file:
        fill_hdf5_file(h5file, [("train", "x", jpegs)])
    _write_tar(folder / "jpegs.tar", (("jpg", jpeg) for jpeg in jpegs))
    (folder / "jpegs").mkdir()
    for number, jpeg in enumerate(jpegs):
        (folder / "jpegs" / f"{number:05}.jpg").write_bytes(jpeg)


def add_dataset_directory(parser: argparse.ArgumentParser) -> None:
    """Let the command line say where the images are.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    """
    parser.add_argument(
        "--dataset-directory",
        help="folder of train-images-idx3-ubyte.gz, of MNIST or of Fashion-MNIST; by default as "
        "many random images are made",
    )


def read_images(directory: str | None) -> numpy.ndarray:
    """Read 60,000 images of 28 × 28 pixels, or make random ones.

    Parameters
    ----------
    directory : str or None
        Folder of their IDX file.

    Returns
    -------
    uint8 array of shape (example, pixel)
    """
    if directory is None:
        return numpy.random.default_rng(1).integers(0, 256, (60000, 784), dtype="uint8")
    with gzip.open(Path(directory) / "train-images-idx3-ubyte.gz") as file:
        return numpy.frombuffer(file.read()[16:], "uint8").reshape(-1, 784)


def _jpeg(number: int) -> bytes:
    from PIL import Image

    draw = numpy.random.default_rng(number)
    small = Image.fromarray(draw.integers(0, 256, (12, 12, 3), dtype="uint8"))
    size = tuple(int(side) for side in draw.integers(96, 400, 2))
    written = io.BytesIO()
    small.resize(size, Image.Resampling.BICUBIC).save(written, "JPEG", quality=90)
    return written.getvalue()


def _write_tar(path: Path, members: Iterator[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as tar:
        for number, (suffix, content) in enumerate(members):
            info = tarfile.TarInfo(f"{number:06}.{suffix}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def time_epochs(name: str, folder: str, epochs: int) -> dict[str, Any]:
    """Read some epochs.

    Parameters
    ----------
    name : str
        Of the reader.
    folder : str
        What `prepare` filled.
    epochs : int
        How many count; one before does not, unless an epoch is read in part.

    Returns
    -------
    dict
        The seconds of each and the sum of all bytes of one.
    """
    part = PARTS.get(name, 1)
    begin = READERS[name](Path(folder))
    seconds, total = [], 0
    for number in range(epochs + 1 if part == 1 else 1):
        started = time.perf_counter()
        total = sum(map(_sum, islice(begin(), _num_batches(name) // part))) % 2**64
        if number or part > 1:
            seconds.append((time.perf_counter() - started) * part)
    # What reads a part of an epoch has no sum to compare.
    return {"seconds": seconds, "sum": total if part == 1 else None}


def _sum(batch: Any) -> int:
    """Look at every byte; at eight of them at a time where that goes, so that it takes little."""
    if isinstance(batch, numpy.ndarray) and batch.dtype != object:
        return int(batch.reshape(-1).view("uint64").sum())
    return sum(int(item.sum(dtype="uint64")) for item in batch)


def _num_batches(name: str) -> int:
    return NUM_JPEGS // JPEG_BATCH if name.startswith("jpeg-") else 60000 // BATCH


Begin = Callable[[], Any]


def _orders(count: int, batch: int) -> Iterator[list[numpy.ndarray]]:
    draw = numpy.random.default_rng(0)
    while True:
        yield numpy.split(draw.permutation(count), count // batch)


def _map(folder: Path) -> Begin:
    images, orders = numpy.load(folder / "images.npy", mmap_mode="r"), _orders(60000, BATCH)
    return lambda: (images[indices] for indices in next(orders))


def _stream(file: str, batch: int, **options: Any) -> Callable[[Path], Begin]:
    def reader(folder: Path) -> Begin:
        from fuel_data.datasets import H5PYDataset
        from fuel_data.schemes import SequentialScheme, ShuffledScheme
        from fuel_data.streams import DataStream

        kind = SequentialScheme if options.pop("in_order", False) else ShuffledScheme
        dataset = H5PYDataset(folder / file, ("train",), **options)
        stream = DataStream(dataset, iteration_scheme=kind(dataset.num_examples, batch))
        return lambda: (data[0] for data in stream.get_epoch_iterator())

    return reader


def _data_set_alone(folder: Path) -> Begin:
    from fuel_data.datasets import H5PYDataset

    dataset, orders = H5PYDataset(folder / "plain.hdf5", ("train",)), _orders(60000, BATCH)
    return lambda: (dataset.get_data(request=indices)[0] for indices in next(orders))


def _h5py(file: str, count: int, batch: int) -> Callable[[Path], Begin]:
    def reader(folder: Path) -> Begin:
        import h5py
        import hdf5plugin  # noqa: F401  (lets HDF5 undo zstd)

        values, orders = h5py.File(folder / file)["x"], _orders(count, batch)
        # It takes indices in increasing order only.
        return lambda: (values[numpy.sort(indices)] for indices in next(orders))

    return reader


def _h5py_slices(folder: Path) -> Begin:
    import h5py

    values = h5py.File(folder / "plain.hdf5")["x"]
    return lambda: (values[start : start + BATCH] for start in range(0, 60000, BATCH))


class Items:
    """A data set as PyTorch and Grain take it; a worker opens its file itself.

    Parameters
    ----------
    folder : Path
    kind : {'map', 'h5py', 'jpegs', 'h5py-jpegs'}
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind, self._open = folder, kind, None
        self._count = NUM_JPEGS if "jpegs" in kind else 60000

    def __len__(self) -> int:
        return self._count

    def _data(self) -> Any:
        if self._open is None:
            if self.kind == "map":
                self._open = numpy.load(self.folder / "images.npy", mmap_mode="r")
            else:
                import h5py

                name = "jpegs.hdf5" if "jpegs" in self.kind else "plain.hdf5"
                self._open = h5py.File(self.folder / name)["x"]
        return self._open

    def __getitem__(self, index: int) -> numpy.ndarray:
        if self.kind == "jpegs":
            content = (self.folder / "jpegs" / f"{index:05}.jpg").read_bytes()
            return numpy.frombuffer(content, "uint8")
        return numpy.asarray(self._data()[index])


class Batches(Items):
    """The same, many at once, as PyTorch's documents advise."""

    def __getitems__(self, indices: list[int]) -> numpy.ndarray:
        """Read a batch."""
        return self._data()[indices]


def _same(batch: Any) -> Any:
    return batch


def _loader(kind: str, workers: int, batch: int) -> Callable[[Path], Begin]:
    def reader(folder: Path) -> Begin:
        import torch
        from torch.utils.data import BatchSampler, DataLoader, RandomSampler

        options: dict[str, Any] = {"num_workers": workers, "persistent_workers": workers > 0}
        if kind == "map":
            data = Batches(folder, kind)
            loader = DataLoader(data, batch, shuffle=True, collate_fn=torch.from_numpy, **options)
        else:
            data = Items(folder, kind)
            sampler = BatchSampler(RandomSampler(data), batch, drop_last=False)
            collate = _same if "jpegs" in kind else None
            loader = DataLoader(data, batch_sampler=sampler, collate_fn=collate, **options)
        as_array = (lambda item: item) if "jpegs" in kind else (lambda item: item.numpy())
        return lambda: (as_array(item) for item in loader)

    return reader


def _grain(kind: str, batch: int) -> Callable[[Path], Begin]:
    def reader(folder: Path) -> Begin:
        import grain

        data = grain.MapDataset.source(Items(folder, kind)).seed(1)
        together = {"batch_fn": list} if "jpegs" in kind else {}
        epochs = iter(range(1000))
        return lambda: iter(
            data.seed(next(epochs)).shuffle().to_iter_dataset().batch(batch, **together)
        )

    return reader


def _webdataset(file: str, suffix: str, buffer: int, batch: int) -> Callable[[Path], Begin]:
    def reader(folder: Path) -> Begin:
        import webdataset

        data = webdataset.WebDataset(str(folder / file), shardshuffle=False).shuffle(buffer)
        decoded = data.map(lambda sample: numpy.frombuffer(sample[suffix], "uint8"))
        collate = _same if suffix == "jpg" else numpy.stack
        return lambda: iter(decoded.batched(batch, collation_fn=collate))

    return reader


READERS: dict[str, Callable[[Path], Begin]] = {
    "map": _map,
    "firebrick": _stream("plain.hdf5", BATCH),
    "firebrick-list": _data_set_alone,
    "firebrick-chunks": _stream("chunks.hdf5", BATCH),
    "firebrick-gzip": _stream("gzip.hdf5", BATCH),
    "firebrick-gzip-small": _stream("gzip.hdf5", BATCH, cache_bytes=2**22),
    "firebrick-zstd": _stream("zstd.hdf5", BATCH),
    "firebrick-zstd-small": _stream("zstd.hdf5", BATCH, cache_bytes=2**22),
    "h5py": _h5py("plain.hdf5", 60000, BATCH),
    "h5py-gzip": _h5py("gzip.hdf5", 60000, BATCH),
    "h5py-zstd": _h5py("zstd.hdf5", 60000, BATCH),
    "torch": _loader("map", 0, BATCH),
    "torch-workers": _loader("map", 2, BATCH),
    "torch-h5py": _loader("h5py", 2, BATCH),
    "grain": _grain("map", BATCH),
    "webdataset": _webdataset("images.tar", "bin", 5000, BATCH),
    "firebrick-slices": _stream("plain.hdf5", BATCH, in_order=True),
    "h5py-slices": _h5py_slices,
    "jpeg-firebrick": _stream("jpegs.hdf5", JPEG_BATCH),
    "jpeg-h5py": _h5py("jpegs.hdf5", NUM_JPEGS, JPEG_BATCH),
    "jpeg-torch": _loader("jpegs", 2, JPEG_BATCH),
    "jpeg-torch-h5py": _loader("h5py-jpegs", 2, JPEG_BATCH),
    "jpeg-grain": _grain("jpegs", JPEG_BATCH),
    "jpeg-webdataset": _webdataset("jpegs.tar", "jpg", 1000, JPEG_BATCH),
}
