"""The archive of the One Billion Word benchmark."""

from fuel_data.datasets.one_billion_word import ARCHIVE
from fuel_data.downloaders.base import fill_from_mirrors

MIRRORS = ("http://www.statmt.org/lm-benchmark/",)
SHA256 = {f"{ARCHIVE}.tar.gz": "01ba60381110baf7f189dfd2b8374de371e8c9a340835793f190bdae9e90a34e"}

fill_subparser = fill_from_mirrors(MIRRORS, SHA256)
