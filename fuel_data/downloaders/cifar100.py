"""The archive of CIFAR-100."""

from fuel_data.downloaders.base import fill_from_mirrors

MIRRORS = ("https://www.cs.toronto.edu/~kriz/", "http://www.cs.toronto.edu/~kriz/")
SHA256 = {
    "cifar-100-python.tar.gz": ("85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
}

fill_subparser = fill_from_mirrors(MIRRORS, SHA256)
