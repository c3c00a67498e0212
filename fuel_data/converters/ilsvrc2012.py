"""ImageNet's challenge of 2012.

Its test images have no published classes. They were issued once more in 2019, under another name
and without a published digest; both archives are taken.
"""

from fuel_data.converters.ilsvrc import Challenge, ilsvrc_converter

CHALLENGE = Challenge(
    year=2012,
    devkit="ILSVRC2012_devkit_t12.tar.gz",
    train=("ILSVRC2012_img_train.tar",),
    valid=("ILSVRC2012_img_val.tar",),
    test=("ILSVRC2012_img_test.tar", "ILSVRC2012_img_test_v10102019.tar"),
    counts={"train": 1281167, "valid": 50000, "test": 100000},
    digests={
        "ILSVRC2012_devkit_t12.tar.gz": "fa75699e90414af021442c21a62c3abf",
        "ILSVRC2012_img_train.tar": "1d675b47d978889d74fa0da5fadfb00e",
        "ILSVRC2012_img_val.tar": "29b22e2961454d5413ddabcf34fc5622",
    },
)

convert_ilsvrc2012, fill_subparser = ilsvrc_converter(CHALLENGE)
