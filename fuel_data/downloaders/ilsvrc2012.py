"""The files of ImageNet's challenge of 2012."""

from fuel_data.converters.ilsvrc2012 import CHALLENGE
from fuel_data.downloaders.ilsvrc import ilsvrc_downloader

PUBLIC = {
    "ILSVRC2012_devkit_t12.tar.gz": [
        "https://image-net.org/data/ILSVRC/2012/ILSVRC2012_devkit_t12.tar.gz"
    ],
}

fill_subparser = ilsvrc_downloader(CHALLENGE, PUBLIC)
