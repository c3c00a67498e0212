"""The files of ImageNet's challenge of 2010."""

from fuel_data.converters.ilsvrc2010 import CHALLENGE
from fuel_data.downloaders.ilsvrc import ilsvrc_downloader

PUBLIC = {
    "ILSVRC2010_devkit-1.0.tar.gz": [
        "https://image-net.org/data/ILSVRC/2010/ILSVRC2010_devkit-1.0.tar.gz",
        "http://www.image-net.org/challenges/LSVRC/2010/download/ILSVRC2010_devkit-1.0.tar.gz",
    ],
    "ILSVRC2010_test_ground_truth.txt": [
        "https://image-net.org/data/ILSVRC/2010/ILSVRC2010_test_ground_truth.txt",
        "http://www.image-net.org/challenges/LSVRC/2010/ILSVRC2010_test_ground_truth.txt",
    ],
}

fill_subparser = ilsvrc_downloader(CHALLENGE, PUBLIC)
