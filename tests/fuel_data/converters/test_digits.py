import hashlib
import importlib.resources

import h5py
import numpy
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.digits import convert_digits, split_digits

# SHA-256 of the images and classes, as bytes, that scikit-learn 1.9.1 loads by `load_digits`.
IMAGES = "8f26b2bd9d135c256808f68f14fdabddde6d9c7f869ae419704b051f0f14b3b3"
CLASSES = "8ba4f891220f5e4c9c819638d1602d74b83618f167043c6da52a2a247841ddf0"


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    (path,) = convert_digits(None, folder)
    with h5py.File(path) as h5file:
        yield h5file


@pytest.fixture(scope="module")
def original():
    path = importlib.resources.files("fuel_data.datasets") / "data/digits.csv.gz"
    table = numpy.loadtxt(path, delimiter=",", dtype="uint8")
    return table[:, :64].reshape(-1, 8, 8), table[:, 64].copy()


def test_the_file_has_the_digits_of_scikit_learn_up_to_their_order(converted, original):
    images, classes = original

    assert hashlib.sha256(images.tobytes()).hexdigest() == IMAGES
    assert hashlib.sha256(classes.tobytes()).hexdigest() == CLASSES
    order = numpy.concatenate(split_digits(classes))
    assert sorted(order) == list(range(1797))
    assert_array_equal(converted["features"][:, 0], images[order])
    assert_array_equal(converted["targets"][:, 0], classes[order])
    assert converted["features"].shape == (1797, 1, 8, 8)
    assert converted["features"].dtype == converted["targets"].dtype == "uint8"


def test_the_axes_are_labelled(converted):
    assert [dim.label for dim in converted["features"].dims] == [
        "batch",
        "channel",
        "height",
        "width",
    ]
    assert [dim.label for dim in converted["targets"].dims] == ["batch", "index"]


def test_the_split_has_the_promised_sizes_and_a_fifth_of_each_class(converted):
    rows = converted.attrs["split"]
    assert rows[["split", "source", "start", "stop"]].tolist() == [
        (b"train", b"features", 0, 1437),
        (b"train", b"targets", 0, 1437),
        (b"test", b"features", 1437, 1797),
        (b"test", b"targets", 1437, 1797),
    ]

    in_all = numpy.bincount(converted["targets"][:, 0])
    in_test = numpy.bincount(converted["targets"][1437:, 0])

    assert (abs(in_test - in_all / 5) < 1).all()


def test_every_fifth_image_of_the_list_ordered_by_class_is_for_testing():
    classes = numpy.array([0, 1, 0, 2, 1, 0, 1, 0])

    train, test = split_digits(classes)

    # Ordered by class the examples are 0 2 5 7, 1 4 6, 3; the first and the sixth are for testing.
    assert test.tolist() == [0, 4]
    assert train.tolist() == [1, 2, 3, 5, 6, 7]


def test_the_test_images_never_change(original):
    """The split is part of every result that was published on it."""
    _, test = split_digits(original[1])

    assert test[:12].tolist() == [0, 2, 4, 17, 21, 26, 28, 31, 33, 45, 48, 54]
    assert hashlib.sha256(test.astype("<i8").tobytes()).hexdigest() == (
        "6708f8ccc741cc5fb3b3e35410cf1148c6065f6d1c47cc6439578dc07e3dba39"
    )
