"""The archive of CIFAR-10."""

from fuel_data.downloaders.base import fill_from_mirrors

MIRRORS = ("https://www.cs.toronto.edu/~kriz/", "http://www.cs.toronto.edu/~kriz/")
SHA256 = {
    "cifar-10-python.tar.gz": ("6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
}

fill_subparser = fill_from_mirrors(MIRRORS, SHA256)
