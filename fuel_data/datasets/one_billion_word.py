"""The One Billion Word benchmark."""

import os
from collections.abc import Callable, Iterable, Mapping

from fuel_data.datasets.text import TextFile
from fuel_data.utils.names import nearest_name
from fuel_data.utils.paths import find_in_data_path

FOLDER = "1-billion-word"
ARCHIVE = "1-billion-word-language-modeling-benchmark-r13output"
# Name of a set → its folder, the form of the names of its files, and their numbers.
SETS = {
    "training": (
        "training-monolingual.tokenized.shuffled",
        "news.en-{:05d}-of-00100",
        range(1, 100),
    ),
    "heldout": (
        "heldout-monolingual.tokenized.shuffled",
        "news.en.heldout-{:05d}-of-00050",
        range(50),
    ),
}


class OneBillionWord(TextFile):
    """Shuffled sentences of news in English, in partitions.

    The files are looked for in the folder ``1-billion-word`` of the data path, which is what is
    inside of the archive, or the archive's own folder. ``fuel-download one_billion_word`` fetches
    the archive, ``tar -xzf`` unpacks it. See `TextFile` for the source.

    No licence is stated for the texts, which are of the news crawl of WMT 2011. Cite C. Chelba et
    al., *One Billion Word Benchmark for Measuring Progress in Statistical Language Modeling*,
    arXiv:1312.3005, 2013.

    Parameters
    ----------
    which_set : {'training', 'heldout'}
        The set.
    which_partitions : iterable of int
        Its partitions, in this order: of ``'training'`` those from 1 to 99, of ``'heldout'`` those
        from 0 to 49.
    dictionary : mapping of str to int, or path
        As for `TextFile`, which has the other arguments, too.
    bos_token, eos_token, unk_token : str or None, optional
        As for `TextFile`.
    level : {'word', 'character'}, optional
        As for `TextFile`.
    preprocess : function from str to str, optional
        As for `TextFile`.
    encoding : str, optional
        As for `TextFile`.

    Attributes
    ----------
    which_set, which_partitions
        As given, the partitions as a tuple.

    Raises
    ------
    ValueError
        If there is no such set or partition.
    FileNotFoundError
        If a file is in no folder of the data path.
    """

    def __init__(
        self,
        which_set: str,
        which_partitions: Iterable[int],
        dictionary: Mapping[str, int] | str | os.PathLike[str],
        bos_token: str | None = "<S>",
        eos_token: str | None = "</S>",
        unk_token: str | None = "<UNK>",
        level: str = "word",
        preprocess: Callable[[str], str] | None = None,
        encoding: str | None = None,
    ) -> None:
        if which_set not in SETS:
            raise ValueError(
                f"OneBillionWord: there is no set {which_set!r}.{nearest_name(which_set, SETS)}"
            )
        self.which_set = which_set
        self.which_partitions = tuple(which_partitions)
        files = [_find(which_set, number) for number in self.which_partitions]
        super().__init__(
            files, dictionary, bos_token, eos_token, unk_token, level, preprocess, encoding
        )


def _find(which_set: str, partition: int) -> str:
    folder, form, numbers = SETS[which_set]
    if partition not in numbers:
        raise ValueError(
            f"OneBillionWord: the partitions of {which_set!r} are {numbers[0]} to {numbers[-1]}; "
            f"got {partition!r}."
        )
    name = form.format(partition)
    try:
        return find_in_data_path(os.path.join(FOLDER, ARCHIVE, folder, name))
    except OSError:
        pass
    try:
        return find_in_data_path(os.path.join(FOLDER, folder, name))
    except OSError as error:
        raise FileNotFoundError(
            f"OneBillionWord: {error} The command `fuel-download one_billion_word` fetches the "
            f"archive; unpack it into the folder {FOLDER!r} there."
        ) from error
