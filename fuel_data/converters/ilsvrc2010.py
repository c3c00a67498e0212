"""ImageNet's challenge of 2010.

Nobody has published digests of its files.
"""

from fuel_data.converters.ilsvrc import Challenge, ilsvrc_converter

CHALLENGE = Challenge(
    year=2010,
    devkit="ILSVRC2010_devkit-1.0.tar.gz",
    train=("ILSVRC2010_images_train.tar",),
    valid=("ILSVRC2010_images_val.tar",),
    test=("ILSVRC2010_images_test.tar",),
    counts={"train": 1261406, "valid": 50000, "test": 150000},
    digests={},
    test_truth="ILSVRC2010_test_ground_truth.txt",
    patch="patch_images.tar",
)

convert_ilsvrc2010, fill_subparser = ilsvrc_converter(CHALLENGE)
