"""Text, a sentence in a line, as numbers."""

import gzip
import io
import json
import os
import pickle
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO, Any

from fuel_data.datasets.base import Dataset, Request
from fuel_data.utils.digests import digest
from fuel_data.utils.formats import open_

# What reading a packed file raises if its bytes are not those that were written.
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class TextFile(Dataset):
    """Sentences from text files, one in each line, one file after the other.

    The source is `features`: for each sentence the list of the numbers of its words or characters.
    It takes no requests: put `Batch` and `Padding` over the stream for batches, and `Shuffle` for
    another order.

    Parameters
    ----------
    files : path, or sequence of paths
        The files; those that end in ``.gz`` are unpacked as they are read. Only one is open at a
        time.
    dictionary : mapping of str to int, or path
        The number of each token. A path is that of a JSON object (``.json``), a pickled dict
        (``.pkl``, ``.pickle``; it is read without running code), or a text in UTF-8 with a token in
        each line, numbered from 0. No token may be there twice. What is read from a path does not
        go into checkpoints.
    bos_token : str or None, optional
        Token to put before each sentence; None for none.
    eos_token : str or None, optional
        Token to put after each sentence; None for none.
    unk_token : str or None, optional
        Token whose number stands for those that are not in the dictionary. With None such a token
        is an error when it is met.
    level : {'word', 'character'}, optional
        Words are what white space separates; characters are those of the line without white space
        at its ends.
    preprocess : function from str to str, optional
        Applied to each line first.
    encoding : str, optional
        Of the files; UTF-8 by default.

    Attributes
    ----------
    files : list of str
        The files.
    bos_token, eos_token, unk_token, level, preprocess, encoding
        As given.

    Raises
    ------
    ValueError
        If `level` is another, a token is not in the dictionary, or the dictionary cannot be read.
    FileNotFoundError
        If a file is not there.

    Notes
    -----
    Lines end in a line feed, with or without a carriage return before it. The position of a stream
    is the number of a file and an offset, so a run goes on there at once; in a ``.gz`` file, or
    with an encoding whose line feed is not one byte (UTF-16), what is before is passed over first.

    Examples
    --------
    >>> import tempfile
    >>> from fuel_data.streams import DataStream
    >>> words = {"<S>": 0, "</S>": 1, "<UNK>": 2, "the": 3, "cat": 4}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     print("the cat", "the dog", sep="\\n", file=file, flush=True)
    ...     list(DataStream(TextFile([file.name], words)).get_epoch_iterator())
    [([0, 3, 4, 1],), ([0, 3, 2, 1],)]
    """

    provides_sources = ("features",)

    def __init__(
        self,
        files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        dictionary: Mapping[str, int] | str | os.PathLike[str],
        bos_token: str | None = "<S>",
        eos_token: str | None = "</S>",
        unk_token: str | None = "<UNK>",
        level: str = "word",
        preprocess: Callable[[str], str] | None = None,
        encoding: str | None = None,
    ) -> None:
        self.files = [
            os.fspath(path)
            for path in ([files] if isinstance(files, (str, os.PathLike)) else files)
        ]
        for path in self.files:
            if not os.path.isfile(path):
                raise FileNotFoundError(f"{type(self).__name__}: there is no file {path}.")
        if level not in ("word", "character"):
            raise ValueError(
                f"{type(self).__name__}: `level` must be 'word' or 'character'; got {level!r}."
            )
        self._dictionary: str | dict[str, int]
        if isinstance(dictionary, (str, os.PathLike)):
            self._dictionary = os.path.abspath(dictionary)
        else:
            self._dictionary = dict(dictionary)
        self._tokens: dict[str, int] | None = None
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.unk_token = unk_token
        self.level = level
        self.preprocess = preprocess
        self.encoding = encoding
        self._check_tokens()
        self.example_iteration_scheme = None
        super().__init__(axis_labels={"features": ("time",)})

    def _check_tokens(self) -> None:
        for argument in ("bos_token", "eos_token", "unk_token"):
            token = getattr(self, argument)
            if token is not None and token not in self.dictionary:
                raise ValueError(
                    f"{type(self).__name__}: `{argument}` is {token!r}, which is not in the "
                    f"dictionary of {len(self.dictionary):,} tokens. Add it there, name the token "
                    f"that it has, or give {argument}=None for none."
                )

    @property
    def dictionary(self) -> dict[str, int]:
        """The number of each token."""
        if self._tokens is None:
            given = self._dictionary
            self._tokens = given if isinstance(given, dict) else _read_dictionary(given)
        return self._tokens

    def open(self) -> "Lines":
        """Go to the first line; see `Dataset.open`."""
        return Lines(self.files, self.encoding, type(self).__name__)

    def close(self, state: "Lines") -> None:
        """Close the file that is open; see `Dataset.close`."""
        state.close()

    def skip(self, state: "Lines", count: int) -> None:
        """Pass over lines; see `Dataset.skip`."""
        for _ in range(count):
            state.read()

    def get_position(self, state: "Lines") -> list[int]:
        """Say where a state stands, for a checkpoint.

        Parameters
        ----------
        state : Lines
            From `open`.

        Returns
        -------
        list of int
            Plain data.
        """
        return state.position()

    def set_position(self, state: "Lines", position: list[int]) -> None:
        """Go on where a state stood.

        Parameters
        ----------
        state : Lines
            From `open`, not read yet.
        position : list of int
            From `get_position`.

        Raises
        ------
        ValueError
            If the file there has changed.
        """
        state.go_to(position)

    def get_data(self, state: Any = None, request: Request | None = None) -> tuple[list[int]]:
        """Give the next sentence; see `Dataset.get_data`.

        Raises
        ------
        ValueError
            If there is a request or no state, or the file has another encoding.
        KeyError
            If a token is not in the dictionary and there is no `unk_token`.
        """
        if state is None or request is not None:
            raise ValueError(
                f"{type(self).__name__}.get_data: takes a state from `open` and no request; got "
                f"state {state!r} and request {request!r}."
            )
        return (self._numbers(state.read(), state),)

    def _numbers(self, line: str, state: "Lines") -> list[int]:
        if self.preprocess is not None:
            line = self.preprocess(line)
        tokens: Sequence[str] = line.split() if self.level == "word" else line.strip()
        dictionary = self.dictionary
        if self.unk_token is not None:
            unknown = dictionary[self.unk_token]
            numbers = [dictionary.get(token, unknown) for token in tokens]
        else:
            try:
                numbers = [dictionary[token] for token in tokens]
            except KeyError as error:
                raise KeyError(
                    f"{state.where()}: {error.args[0]!r} is not in the dictionary, and there is no "
                    "`unk_token` for such tokens."
                ) from error
        first = [] if self.bos_token is None else [dictionary[self.bos_token]]
        last = [] if self.eos_token is None else [dictionary[self.eos_token]]
        return [*first, *numbers, *last]

    def identity(self) -> dict[str, Any]:
        """Say what data these are: names and sizes of the files, and how tokens are made."""
        from fuel_data.identity import describe

        return {
            **super().identity(),
            "files": [[os.path.basename(path), os.path.getsize(path)] for path in self.files],
            "dictionary": digest(self.dictionary),
            "tokens": [self.bos_token, self.eos_token, self.unk_token, self.level, self.encoding],
            "preprocess": describe(self.preprocess),
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tokens": None}

    def __repr__(self) -> str:
        shown = ", ".join(os.path.basename(path) for path in self.files[:3])
        more = f", … {len(self.files)} files" if len(self.files) > 3 else ""
        return f"{type(self).__name__}({shown}{more}, level={self.level!r})"


class Lines:
    """The lines of several files, one after the other.

    Parameters
    ----------
    files : sequence of str
        The files.
    encoding : str or None
        Their encoding; UTF-8 by default.
    who : str
        The data set, for errors.

    Raises
    ------
    ValueError
        If there is no such encoding.
    """

    def __init__(self, files: Sequence[str], encoding: str | None, who: str) -> None:
        self.files = files
        self.encoding = encoding or "utf-8"
        self.who = who
        self._is_plain = _has_ascii_bytes(self.encoding, who)
        self._number = 0
        self._file: IO | None = None
        self._size = 0
        # Bytes before the next line of this file, or lines where bytes do not tell.
        self._offset = 0
        self._lines = 0

    def read(self) -> str:
        """Give the next line.

        Returns
        -------
        str
            With the line feed at its end.

        Raises
        ------
        StopIteration
            If there is none.
        ValueError
            If the file has another encoding, or cannot be unpacked.
        """
        while self._number < len(self.files):
            line = self._read_line(self._file or self._open())
            if line:
                return line
            self.close()
            self._number += 1
            self._offset = self._lines = 0
        raise StopIteration

    def _open(self) -> IO:
        path = self.files[self._number]
        self._size = os.path.getsize(path)
        if self._is_plain:
            self._file = open_(path, "rb")
        else:
            self._file = io.TextIOWrapper(open_(path, "rb"), encoding=self.encoding, newline="\n")
        return self._file

    def _read_line(self, file: IO) -> str:
        try:
            line = file.readline()
            text = line.decode(self.encoding) if self._is_plain else line
        except UnicodeError as error:
            raise ValueError(
                f"{self.where()} is not {self.encoding}: {error}. Say by `encoding` what it is."
            ) from error
        except _DAMAGE as error:
            raise self._damaged(error) from error
        self._offset += len(line) if self._is_plain else bool(line)
        self._lines += bool(line)
        return text

    def _damaged(self, error: Exception) -> ValueError:
        return ValueError(f"{self.where()}: the file is cut short or damaged: {error}")

    def where(self) -> str:
        """Say which line was read, or failed to be.

        Returns
        -------
        str
        """
        path = self.files[min(self._number, len(self.files) - 1)]
        unit = "byte" if self._is_plain else "line"
        return f"{self.who}: {path}, near {unit} {self._offset:,}"

    def position(self) -> list[int]:
        """Say where the next line is.

        Returns
        -------
        list of int
            Number and size of the file, and bytes (or lines) before the line in it.
        """
        if self._number == len(self.files):
            return [self._number, 0, 0]
        if self._file is None:
            self._size = os.path.getsize(self.files[self._number])
        return [self._number, self._size, self._offset]

    def go_to(self, position: Sequence[int]) -> None:
        """Go to a position.

        Parameters
        ----------
        position : sequence of int
            From `position`.

        Raises
        ------
        ValueError
            If the file there has another size now, or cannot be unpacked.
        """
        self.close()
        self._number, size, self._offset = position
        if self._number == len(self.files):
            return
        path = self.files[self._number]
        found = os.path.getsize(path)
        if found != size:
            raise ValueError(
                f"{self.who}: {path} has changed since the position was saved: it had {size:,} "
                f"bytes, and has {found:,} now. Put the old file back, or begin anew."
            )
        file = self._open()
        try:
            if self._is_plain:
                file.seek(self._offset)
            else:
                for _ in range(self._offset):
                    file.readline()
        except _DAMAGE as error:
            raise self._damaged(error) from error

    def close(self) -> None:
        """Close the file that is open; the position stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        # Of an epoch that was left in the middle; not if __init__ has failed.
        if "_file" in self.__dict__:
            self.close()


def _has_ascii_bytes(encoding: str, who: str) -> bool:
    """Tell whether lines can be told apart before they are decoded."""
    try:
        return all(chr(code).encode(encoding) == bytes([code]) for code in range(128))
    except LookupError as error:
        raise ValueError(f"{who}: `encoding` is {encoding!r}, which is unknown.") from error
    except UnicodeError:
        return False


class _PlainUnpickler(pickle.Unpickler):
    """Reads dicts, texts and numbers, for which a pickle names nothing to import."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(
            f"it asks for {module}.{name}, and only a plain dict of str to int is read. Save "
            "dict(dictionary), or JSON"
        )


def _read_dictionary(path: str) -> dict[str, int]:
    try:
        if path.endswith((".pkl", ".pickle")):
            with open(path, "rb") as file:
                found = _PlainUnpickler(file).load()
        else:
            # Only line feeds end lines; `str.splitlines` has others, which may be in tokens.
            with open(path, encoding="utf-8", newline="\n") as file:
                if path.endswith(".json"):
                    found = json.load(file, object_pairs_hook=_without_repeats)
                else:
                    found = _without_repeats(
                        (line.removesuffix("\n").removesuffix("\r"), number)
                        for number, line in enumerate(file)
                    )
    except (ValueError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(f"The dictionary {path} cannot be read: {error}.") from error
    pairs = found.items() if isinstance(found, dict) else [(None, None)]
    if not all(type(token) is str and type(number) is int for token, number in pairs):
        raise ValueError(f"The dictionary {path} must hold tokens and their whole numbers.")
    return found


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for token, number in pairs:
        if token in found:
            raise ValueError(f"{token!r} has two numbers, {found[token]} and {number}")
        found[token] = number
    return found
