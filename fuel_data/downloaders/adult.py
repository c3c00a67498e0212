"""The two tables of Adult, at UCI."""

from fuel_data.converters.adult import DIGESTS
from fuel_data.downloaders.base import fill_from_mirrors

MIRRORS = ("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/",)

fill_subparser = fill_from_mirrors(MIRRORS, DIGESTS)
