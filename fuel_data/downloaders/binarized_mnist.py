"""The three files of binarized MNIST."""

from fuel_data.converters.binarized_mnist import DIGESTS
from fuel_data.downloaders.base import fill_from_mirrors

FOLDER = "www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/"
MIRRORS = (f"http://{FOLDER}", f"https://{FOLDER}")

fill_subparser = fill_from_mirrors(MIRRORS, DIGESTS)
