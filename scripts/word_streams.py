"""Streams of words of a text for ``reverse_words.py``, and for a data server: no compiler here.

The text is any file of UTF-8 text, or the six novels of Jane Austen as Debian packages them for R::

    apt-get download r-cran-janeaustenr && dpkg-deb -x r-cran-janeaustenr_*.deb austen

which needs no root, and gives ``austen/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb`` (1 MB,
in the public domain: 14 thousand different words).
"""

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel_data.streams import AbstractDataStream, DataStream
from fuel_data.transformers import Cache, Mapping, Padding, SortMapping

AUSTEN = "austen/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb"
#: What ends a word; the letters are 1 to 26.
END = 0
NUM_SYMBOLS = 27
MAX_LETTERS = 17
#: Words are filled to one of these lengths, their end included.
LENGTHS = (8, 11, 18)
#: One word of so many is held out.
HELD_OUT = 10


def read_text(path: str) -> str:
    """Read a text.

    Parameters
    ----------
    path : str
        A file of text, or one of R whose name ends with ``.rdb``.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        If there is none; says how to get one.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no text {path!r}. Give another one by --text, or get the novels of Jane "
            "Austen: apt-get download r-cran-janeaustenr && "
            "dpkg-deb -x r-cran-janeaustenr_*.deb austen"
        )
    if file.suffix == ".rdb":
        return "\n".join(read_r_strings(file.read_bytes()))
    return file.read_text(encoding="utf-8")


def read_r_strings(data: bytes) -> Iterator[str]:
    """Read the vectors of strings in a file of R that is loaded lazily.

    Parameters
    ----------
    data : bytes
        Records of a length (four bytes) and a stream of zlib, which holds one value each in the
        binary format of R's ``serialize``, version 3.

    Yields
    ------
    str
        Each string of each value that is a vector of strings; others are passed over.
    """
    while data:
        unpacker = zlib.decompressobj()
        record = unpacker.decompress(data[4:])
        data = unpacker.unused_data
        (name_length,) = struct.unpack_from(">i", record, 14)
        place = 18 + name_length
        flags, count = struct.unpack_from(">ii", record, place)
        if flags & 0xFF != 16:
            continue
        place += 8
        for _ in range(count):
            (length,) = struct.unpack_from(">i", record, place + 4)
            place += 8
            # A missing string has the length -1.
            yield record[place : place + max(0, length)].decode("utf-8")
            place += max(0, length)


def split_words(text: str) -> tuple[list[str], list[str]]:
    """Find the different words of a text, and hold some out.

    Parameters
    ----------
    text : str

    Returns
    -------
    training, held_out : list of str
        In alphabetic order. Which words are held out depends on nothing but the words themselves.
    """
    found = re.findall(r"[a-z]+", text.lower())
    words = sorted({word for word in found if 1 < len(word) <= MAX_LETTERS})
    split: tuple[list[str], list[str]] = ([], [])
    for word in words:
        digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
        split[int.from_bytes(digest, "big") % HELD_OUT == 0].append(word)
    return split


def encode(word: str) -> numpy.ndarray:
    """Make numbers of the letters of a word.

    Parameters
    ----------
    word : str
        Of the letters a to z.

    Returns
    -------
    int64 array of shape (letter + 1,)
        The last one is `END`.
    """
    return numpy.array([*(ord(letter) - ord("a") + 1 for letter in word), END])


def decode(symbols: list[int]) -> str:
    """Make a word of the numbers of its letters.

    Parameters
    ----------
    symbols : sequence of int
        All behind the first `END` is not looked at.

    Returns
    -------
    str
    """
    letters = [*symbols, END]
    return "".join(chr(s - 1 + ord("a")) for s in letters[: letters.index(END)])


def length_of(example: tuple) -> int:
    """Give the length by which words are sorted.

    Parameters
    ----------
    example : tuple
        Of sources, the word first.

    Returns
    -------
    int
    """
    return len(example[0])


def put_time_first(data: tuple) -> tuple:
    """Transpose batches.

    Parameters
    ----------
    data : tuple of array of shape (batch, time)

    Returns
    -------
    tuple of array of shape (time, batch)
    """
    return tuple(numpy.ascontiguousarray(array.T) for array in data)


def batches_of(stream: AbstractDataStream) -> AbstractDataStream:
    """Fill words to few lengths, and put time first.

    Parameters
    ----------
    stream : AbstractDataStream
        Batches of words.

    Returns
    -------
    AbstractDataStream
        Batches of ``words``, ``words_mask``, ``reversed`` and ``reversed_mask``, of shape (time,
        batch).
    """
    padded = Padding(stream, lengths=LENGTHS)
    labels = dict.fromkeys(padded.sources, ("time", "batch"))
    return Mapping(padded, put_time_first, axis_labels=labels)


def dataset_of(words: list[str]) -> IndexableDataset:
    """Make a data set of words.

    Parameters
    ----------
    words : list of str

    Returns
    -------
    IndexableDataset
        Of ``words`` and ``reversed``.
    """
    sources = {"words": words, "reversed": [word[::-1] for word in words]}
    columns = {}
    for name, column in sources.items():
        columns[name] = numpy.empty(len(column), dtype=object)
        columns[name][:] = [encode(word) for word in column]
    return IndexableDataset(columns, axis_labels=dict.fromkeys(columns, ("batch", "time")))


def train(text: str = AUSTEN, batch_size: int = 64, seed: int = 1) -> AbstractDataStream:
    """Give shuffled training words, those of similar length together.

    Parameters
    ----------
    text : str
        The file.
    batch_size : int
        Words in a batch.
    seed : int
        Of the order.

    Returns
    -------
    AbstractDataStream
        See `batches_of`.
    """
    words, _ = split_words(read_text(text))
    scheme = ShuffledScheme(len(words), 20 * batch_size, seed=seed)
    stream: AbstractDataStream = DataStream(dataset_of(words), iteration_scheme=scheme)
    stream = Mapping(stream, SortMapping(length_of))
    return batches_of(Cache(stream, iteration_scheme=ConstantScheme(batch_size)))


def test(text: str = AUSTEN, batch_size: int = 256) -> AbstractDataStream:
    """Give the words that are held out, in alphabetic order.

    Parameters
    ----------
    text : str
        The file.
    batch_size : int
        Words in a batch.

    Returns
    -------
    AbstractDataStream
        See `batches_of`.
    """
    _, words = split_words(read_text(text))
    scheme = SequentialScheme(len(words), batch_size)
    return batches_of(DataStream(dataset_of(words), iteration_scheme=scheme))
