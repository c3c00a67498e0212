"""Fisher's irises, at UCI."""

from fuel_data.converters.iris import DIGESTS
from fuel_data.downloaders.base import fill_from_mirrors

MIRRORS = ("https://archive.ics.uci.edu/ml/machine-learning-databases/iris/",)

fill_subparser = fill_from_mirrors(MIRRORS, DIGESTS)
