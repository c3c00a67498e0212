"""Decode, enlarge and crop JPEGs by the transformers, and by Pillow in a plain loop, side by side.

Run it as ``scripts/bench images``. The JPEGs are cut from two photographs that scikit-learn brings;
each round reads a batch in each way, in an order drawn anew, and the medians are compared.
"""

import argparse
import importlib.util
import io
import os
import statistics
import time
from pathlib import Path

import numpy
import PIL.Image

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    RandomFixedSizeCrop,
)

LEAST = 256
WINDOW = 224
BILINEAR = PIL.Image.Resampling.BILINEAR


def photographs(count: int) -> list[bytes]:
    """Make JPEGs of various sizes, some smaller than what is asked for.

    Parameters
    ----------
    count : int
        How many.

    Returns
    -------
    list of bytes
    """
    folder = importlib.util.find_spec("sklearn").submodule_search_locations[0]
    both = [
        PIL.Image.open(Path(folder, "datasets/images", name)).convert("RGB")
        for name in ("china.jpg", "flower.jpg")
    ]
    rng = numpy.random.default_rng(1)
    files = []
    for number in range(count):
        width, height = rng.integers(200, 640), rng.integers(200, 427)
        left, top = rng.integers(0, 641 - width), rng.integers(0, 428 - height)
        file = io.BytesIO()
        part = both[number % 2].crop((left, top, left + width, top + height))
        part.save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def by_pillow(files: list[bytes], in_order: bool) -> numpy.ndarray:
    """Decode, enlarge and crop a batch as one writes it with Pillow alone.

    Parameters
    ----------
    files : list of bytes
        The JPEGs.
    in_order : bool
        Whether the memory is to have the order of the axes, as sockets and devices need it and the
        transformers give it. If not, it has that of Pillow, with the channels last.

    Returns
    -------
    uint8 array of shape (batch, channel, height, width)
    """
    batch = numpy.empty((len(files), 3, WINDOW, WINDOW), "uint8")
    rng = numpy.random.default_rng(2)
    images = []
    for number, content in enumerate(files):
        image = PIL.Image.open(io.BytesIO(content)).convert("RGB")
        scale = max(1, LEAST / image.width, LEAST / image.height)
        if scale > 1:
            size = round(image.width * scale), round(image.height * scale)
            image = image.resize(size, BILINEAR)
        left = int(rng.integers(0, image.width - WINDOW, endpoint=True))
        top = int(rng.integers(0, image.height - WINDOW, endpoint=True))
        image = image.crop((left, top, left + WINDOW, top + WINDOW))
        pixels = numpy.asarray(image).transpose(2, 0, 1)
        if in_order:
            batch[number] = pixels
        else:
            images.append(pixels)
    return batch if in_order else numpy.stack(images)


def stream_of(files: list[bytes], num_threads: int) -> RandomFixedSizeCrop:
    """Build the stream that does the same.

    Parameters
    ----------
    files : list of bytes
        The JPEGs, which become one batch.
    num_threads : int
        How many threads decode.

    Returns
    -------
    RandomFixedSizeCrop
    """
    dataset = IndexableDataset({"image": files}, axis_labels={"image": ("batch", "bytes")})
    scheme = SequentialScheme(len(files), len(files))
    decoded = ImagesFromBytes(DataStream(dataset, iteration_scheme=scheme), num_threads=num_threads)
    large = MinimumImageDimensions(decoded, (LEAST, LEAST), resample="bilinear")
    return RandomFixedSizeCrop(large, (WINDOW, WINDOW))


def main() -> None:
    """Time both ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=41)
    options = parser.parse_args()
    files = photographs(options.batch_size)
    one, two = stream_of(files, 1), stream_of(files, 2)
    ways = {
        "Pillow, plain loop": lambda: by_pillow(files, in_order=True),
        "the same, channels last": lambda: by_pillow(files, in_order=False),
        "transformers, one thread": lambda: next(one.get_epoch_iterator()),
        "transformers, two threads": lambda: next(two.get_epoch_iterator()),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    # What one way leaves in the caches and in the heap helps or hinders the next.
    rng = numpy.random.default_rng(3)
    for _ in range(options.rounds):
        for name, way in rng.permutation(list(ways.items())):
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    print(
        f"{options.batch_size} JPEGs decoded, enlarged to {LEAST} and cropped to {WINDOW}; "
        f"medians of {options.rounds} rounds; {os.cpu_count()} cores"
    )
    base = statistics.median(seconds["Pillow, plain loop"])
    for name, times in seconds.items():
        median = statistics.median(times)
        rate = options.batch_size / median
        print(f"{name:27} {1000 * median:7.1f} ms  {rate:7.0f} images/s  {median / base:5.2f} x")


if __name__ == "__main__":
    main()
