import builtins
import importlib.util
import io
import math
import tracemalloc
from pathlib import Path

import numpy
import PIL.Image
import pytest

from fuel_data.datasets import IndexableDataset
from fuel_data.exceptions import AxisLabelsMismatchError
from fuel_data.schemes import SequentialExampleScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import AgnosticTransformer
from fuel_data.transformers.image import (
    ImagesFromBytes,
    MinimumImageDimensions,
    Random2DRotation,
    RandomFixedSizeCrop,
)
from fuel_data.transformers.ragged import ragged

AXES = ("batch", "channel", "height", "width")
# Found, not imported: that takes a second.
SKLEARN = importlib.util.find_spec("sklearn").submodule_search_locations[0]
PHOTOGRAPH = Path(SKLEARN, "datasets/images/china.jpg").read_bytes()


def encoded(pixels, kind="PNG"):
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def gradient(height, width, channels=3):
    pixels = numpy.arange(height * width * channels) * 7 % 256
    return pixels.astype("uint8").reshape(channels, height, width)


def batches(images, axes=AXES, batch_size=None):
    dataset = IndexableDataset({"image": images}, axis_labels=axes and {"image": axes})
    return DataStream(
        dataset, iteration_scheme=SequentialScheme(len(images), batch_size or len(images))
    )


def examples(images, axes=AXES):
    dataset = IndexableDataset({"image": images}, axis_labels=axes and {"image": axes})
    return DataStream(dataset, iteration_scheme=SequentialExampleScheme(len(images)))


def first(stream, **epoch):
    (data,) = next(stream.get_epoch_iterator(**epoch))
    return data


# Decoding.


def test_a_photograph_is_decoded_as_pillow_decodes_it():
    pixels = numpy.asarray(PIL.Image.open(io.BytesIO(PHOTOGRAPH)))

    image = first(ImagesFromBytes(examples([PHOTOGRAPH], axes=("batch", "bytes"))))

    assert image.dtype == "uint8"
    assert image.shape == (3, 427, 640)
    numpy.testing.assert_array_equal(image, pixels.transpose(2, 0, 1))
    assert image.flags.writeable


@pytest.mark.parametrize("num_threads", [1, 3, 20])
def test_a_batch_becomes_a_list_in_order_for_any_number_of_threads(num_threads):
    pixels = [gradient(4 + n, 5).transpose(1, 2, 0) for n in range(7)]
    stream = batches(ragged([numpy.frombuffer(encoded(p), "uint8") for p in pixels]))

    images = first(ImagesFromBytes(stream, num_threads=num_threads))

    assert type(images) is list
    for image, expected in zip(images, pixels, strict=True):
        numpy.testing.assert_array_equal(image, expected.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("color_mode", "kind", "shape"),
    [("RGB", "RGB", (3, 4, 5)), ("L", "L", (1, 4, 5)), (None, None, (1, 4, 5))],
)
def test_images_are_converted_to_the_mode_and_grey_ones_have_a_channel(color_mode, kind, shape):
    grey = gradient(4, 5, 1)[0]

    image = first(ImagesFromBytes(examples([encoded(grey)]), color_mode=color_mode))

    assert image.shape == shape
    assert all((channel == grey).all() for channel in image)


def test_of_16_bits_the_upper_8_are_kept_unless_images_stay_as_they_are():
    wide = numpy.array([[0, 1000, 30000, 65535]], dtype="uint16")
    stream = examples([encoded(wide)])

    for mode, channels in {"RGB": 3, "L": 1, "RGBA": 3, "LA": 1, "RGBX": 3, "YCbCr": 1}.items():
        image = first(ImagesFromBytes(stream, color_mode=mode))
        assert image.dtype == numpy.uint8
        assert image[:channels].tolist() == [[[0, 3, 117, 255]]] * channels
    assert first(ImagesFromBytes(stream, color_mode="I")).tolist() == [wide.tolist()]
    assert first(ImagesFromBytes(stream, color_mode=None)).tolist() == [wide.tolist()]


@pytest.mark.parametrize(("dtype", "mode"), [("int32", "I"), ("float32", "F")])
def test_pixels_of_a_range_that_nobody_knows_are_refused(dtype, mode):
    content = encoded(numpy.full((2, 3), 0.5).astype(dtype), "TIFF")

    with pytest.raises(
        ValueError,
        match=f"^ImagesFromBytes: the source 'image': pixels of mode {mode} have no range of 8 "
        "bits; scale them first",
    ):
        first(ImagesFromBytes(examples([content])))
    assert first(ImagesFromBytes(examples([content]), color_mode=None)).dtype == dtype


def test_a_mode_that_pillow_does_not_have_is_refused_when_the_transformer_is_made():
    with pytest.raises(
        ValueError, match="must be a mode of Pillow's or None; got 'RGBa '. Did you"
    ):
        ImagesFromBytes(examples([PHOTOGRAPH]), "RGBa ")


def test_decoded_images_are_labelled_whatever_was_below():
    stream = batches([PHOTOGRAPH], axes=("batch", "bytes"))
    assert ImagesFromBytes(stream).axis_labels == {"image": AXES}
    assert ImagesFromBytes(examples([PHOTOGRAPH], axes=None)).axis_labels == {"image": AXES[1:]}
    data = {"image": [PHOTOGRAPH], "number": [1]}
    stream = DataStream(IndexableDataset(data), iteration_scheme=SequentialScheme(1, 1))
    labels = ImagesFromBytes(stream, which_sources=["image"]).axis_labels
    assert labels == {"image": AXES, "number": None}
    assert stream.axis_labels is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            PHOTOGRAPH[:5000],
            "ImagesFromBytes: number 1 in a batch of the source 'image' is no imag",
        ),
        (b"", "is no image that Pillow can read: cannot identify .* Leave it out with Filter"),
        ("photograph.jpg", "number 1 in .* must be an encoded image, as bytes or as a uint8 array"),
        (numpy.zeros(9), "uint8 array; got float64. Name the sources that have images"),
    ],
)
def test_what_is_no_image_is_named(content, message):
    stream = ImagesFromBytes(batches(ragged([PHOTOGRAPH, content])))

    with pytest.raises(ValueError, match=message):
        first(stream)


def test_the_number_of_threads_is_no_part_of_the_pipeline_and_at_least_one():
    stream = examples([PHOTOGRAPH])

    digests = {ImagesFromBytes(stream, num_threads=n).digest() for n in (1, 2)}

    assert len(digests) == 1
    assert ImagesFromBytes(stream, "L").digest() not in digests
    with pytest.raises(ValueError, match="`num_threads` must be at least 1; got 0"):
        ImagesFromBytes(stream, num_threads=0)
    with pytest.raises(ValueError, match=r"`num_threads` must be a whole number; got 2\.5"):
        ImagesFromBytes(stream, num_threads=2.5)


@pytest.mark.parametrize("kind", [RandomFixedSizeCrop, Random2DRotation])
def test_a_seed_that_is_no_whole_number_is_refused(kind):
    arguments = [(2, 2)] if kind is RandomFixedSizeCrop else []
    message = rf"^{kind.__name__}: `seed` must be a whole number; got 1\.7"
    with pytest.raises(ValueError, match=message):
        kind(examples([PHOTOGRAPH]), *arguments, seed=1.7)


@pytest.mark.parametrize(
    "make",
    [
        ImagesFromBytes,
        lambda stream: MinimumImageDimensions(stream, (2, 2)),
        Random2DRotation,
    ],
)
def test_a_missing_pillow_is_named_when_the_transformer_is_made(make, monkeypatch):
    import_ = builtins.__import__

    def without_pillow(name, *arguments):
        if name.startswith("PIL"):
            raise ImportError(name)
        return import_(name, *arguments)

    stream = examples([PHOTOGRAPH])
    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(ImportError, match=r"^\w+ needs Pillow: pip install Pillow\."):
        make(stream)


# Enlarging.


@pytest.mark.parametrize(
    ("shape", "least", "expected"),
    [
        ((4, 8), (6, 6), (6, 12)),
        ((4, 8), (2, 9), (5, 9)),
        ((3, 3), (10, 7), (10, 10)),
        ((4, 8), (4, 8), (4, 8)),
        ((1, 3), (10, 30), (10, 30)),
    ],
)
def test_images_that_are_too_small_are_enlarged_in_proportion(shape, least, expected):
    image = first(MinimumImageDimensions(examples([gradient(*shape)]), least))

    assert image.shape[1:] == expected


@pytest.mark.parametrize("resample", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_way_of_resampling_is_heeded(resample, dtype, channels):
    image = gradient(5, 4, channels).astype(dtype)
    mode = numpy.uint8 if dtype == "uint8" else numpy.float32
    by_channel = [
        PIL.Image.fromarray(channel.astype(mode)).resize(
            (8, 10), PIL.Image.Resampling[resample.upper()]
        )
        for channel in image
    ]

    enlarged = first(MinimumImageDimensions(examples([image]), (10, 3), resample=resample))

    assert enlarged.dtype == dtype
    numpy.testing.assert_array_equal(enlarged, numpy.stack(by_channel))


def test_a_batch_of_any_kind_becomes_a_list_and_large_images_pass_as_they_are():
    small, large = gradient(3, 3), gradient(9, 9)
    for images in ([small, large], ragged([small, large])):
        enlarged = first(MinimumImageDimensions(batches(images), (6, 6)))
        assert [image.shape for image in enlarged] == [(3, 6, 6), (3, 9, 9)]
    enlarge = MinimumImageDimensions(batches([small]), (6, 6))
    assert enlarge.transform_source_batch([small, large], "image")[1] is large
    assert type(first(MinimumImageDimensions(batches(numpy.stack([small])), (6, 6)))) is list


# Cropping.


def test_a_crop_is_a_window_of_the_image_at_any_place():
    image = numpy.arange(4 * 5).reshape(1, 4, 5)
    stream = RandomFixedSizeCrop(batches(numpy.stack([image] * 300)), (2, 3), seed=3)

    crops = first(stream)

    corners = {int(crop[0, 0, 0]) for crop in crops}
    assert corners == {5 * top + left for top in range(3) for left in range(3)}
    for crop in crops:
        top, left = divmod(int(crop[0, 0, 0]), 5)
        numpy.testing.assert_array_equal(crop, image[:, top : top + 2, left : left + 3])


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "bool"])
def test_crops_keep_every_dtype(dtype):
    images = numpy.stack([gradient(6, 6), gradient(6, 6)]).astype(dtype)

    assert first(RandomFixedSizeCrop(batches(images), (2, 2))).dtype == dtype
    assert first(RandomFixedSizeCrop(examples(images), (2, 2))).dtype == dtype


def test_crops_of_images_of_several_sizes_are_one_array():
    images = [gradient(6, 7), gradient(9, 6)]
    for batch in (images, ragged(images)):
        assert first(RandomFixedSizeCrop(batches(batch), (6, 6))).shape == (2, 3, 6, 6)


def test_windows_are_in_the_order_of_their_axes_and_keep_no_image_in_memory():
    image = gradient(9, 9).transpose(1, 2, 0).copy().transpose(2, 0, 1)
    for below in (examples([image]), ImagesFromBytes(examples([PHOTOGRAPH]))):
        crop = first(RandomFixedSizeCrop(below, (6, 6)))
        assert crop.flags.c_contiguous and crop.flags.writeable and crop.base is None
    for below in (batches([image]), ImagesFromBytes(batches([PHOTOGRAPH], ("batch", "bytes")))):
        assert first(RandomFixedSizeCrop(below, (6, 6))).flags.c_contiguous


def test_images_with_other_channels_or_dtypes_are_cropped_into_what_stack_makes_of_them():
    images = [gradient(4, 4), gradient(4, 4, 1), gradient(4, 4, 1)]
    crops = first(RandomFixedSizeCrop(batches(images), (4, 4)))
    assert crops.dtype == object
    for crop, image in zip(crops, images, strict=True):
        numpy.testing.assert_array_equal(crop, image)

    images = [gradient(4, 4), gradient(4, 4).astype("float32")]
    crops = first(RandomFixedSizeCrop(batches(images), (4, 4)))
    assert crops.dtype == "float32"
    numpy.testing.assert_array_equal(crops, numpy.stack(images))


@pytest.mark.parametrize("decoded", [True, False])
def test_windows_with_other_channels_are_each_its_own(decoded):
    grey, colour = gradient(6, 6, 1), gradient(6, 6)
    if decoded:
        files = [encoded(grey[0]), encoded(colour.transpose(1, 2, 0)), encoded(grey[0])]
        stream = ImagesFromBytes(batches(files, None), color_mode=None)
    else:
        stream = batches(ragged([grey, colour, grey]))
    windows = first(RandomFixedSizeCrop(stream, (3, 3)))

    assert [window.shape for window in windows] == [(1, 3, 3), (3, 3, 3), (1, 3, 3)]
    assert all(window.flags.writeable and window.base is None for window in windows)


def test_empty_batches_are_rotated_and_cropped_if_their_channels_are_known():
    rng = numpy.random.default_rng(1)
    none = numpy.zeros((0, 3, 4, 4), "uint8")
    crop = RandomFixedSizeCrop(batches([gradient(4, 4)]), (2, 2), rng=rng)
    rotate = Random2DRotation(batches([gradient(4, 4)]), rng=rng)

    assert crop.transform_source_batch(none, "image").shape == (0, 3, 2, 2)
    assert rotate.transform_source_batch(none, "image").shape == (0, 3, 4, 4)
    with pytest.raises(ValueError, match="a batch of the source 'image' is empty, so that the num"):
        crop.transform_source_batch([], "image")


def test_a_generator_of_the_user_draws_as_in_fuel():
    images = numpy.arange(3 * 64).reshape(3, 1, 8, 8)
    own = numpy.random.RandomState(4)
    tops, lefts = own.randint(0, 7, size=3), own.randint(0, 6, size=3)

    crops = first(RandomFixedSizeCrop(batches(images), (2, 3), rng=numpy.random.RandomState(4)))

    expected = [i[:, t : t + 2, k : k + 3] for i, t, k in zip(images, tops, lefts, strict=True)]
    numpy.testing.assert_array_equal(crops, expected)


def test_a_generator_of_the_user_can_be_drawn_from_directly():
    image = gradient(8, 8)
    own = numpy.random.default_rng(4)
    top, left = own.integers(0, 7), own.integers(0, 7)
    crop = RandomFixedSizeCrop(examples([image]), (2, 2), rng=numpy.random.default_rng(4))

    cropped = crop.transform_source_example(image, "image")

    numpy.testing.assert_array_equal(cropped, image[:, top : top + 2, left : left + 2])
    assert crop.transform_source_batch(image[None], "image").shape == (1, 3, 2, 2)
    with pytest.raises(ValueError, match="RandomFixedSizeCrop: it draws anew .* give `rng`"):
        RandomFixedSizeCrop(examples([image]), (2, 2)).transform_source_example(image, "image")


def test_random_images_draw_anew_in_each_epoch_and_the_same_whenever_it_is_read():
    images = numpy.stack([gradient(20, 20)] * 4)
    for make in (lambda s: RandomFixedSizeCrop(s, (3, 3), seed=1), Random2DRotation):
        stream = make(batches(images, batch_size=2))
        epochs = [[image for (image,) in stream.get_epoch_iterator(epoch=n)] for n in (0, 1, 0)]
        assert numpy.array_equal(epochs[0], epochs[2])
        assert not numpy.array_equal(epochs[0], epochs[1])
        assert not numpy.array_equal(epochs[0][0], epochs[0][1])
        assert (stream.num_batches, stream.num_examples) == (2, 4)


@pytest.mark.parametrize(
    "change", [lambda stream: RandomFixedSizeCrop(stream, (5, 5)), Random2DRotation]
)
def test_each_source_is_drawn_for_and_the_channels_of_one_source_are_changed_together(change):
    image = gradient(16, 16, 1)
    labels = dict.fromkeys(("image", "mask"), AXES)
    dataset = IndexableDataset({"image": [image] * 4, "mask": [image] * 4}, axis_labels=labels)

    apart = list(change(DataStream(dataset, SequentialExampleScheme(4))))
    together = list(change(examples(numpy.stack([image.repeat(2, axis=0)] * 4))))

    assert not any(numpy.array_equal(image, mask) for image, mask in apart)
    assert all(numpy.array_equal(*both) for (both,) in together)


def test_an_image_that_is_smaller_than_the_window_is_refused():
    for images in (numpy.zeros((1, 3, 4, 9)), [numpy.zeros((3, 4, 9))]):
        with pytest.raises(ValueError, match="has 4 x 9 pixels, fewer than the window of 5 x 5"):
            first(RandomFixedSizeCrop(batches(images), (5, 5)))


# Rotating.


@pytest.mark.parametrize("resample", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_image_is_rotated_as_pillow_rotates_it_by_an_angle_in_radians(resample, dtype):
    image = gradient(7, 9).astype(dtype)
    angle = numpy.random.RandomState(2).uniform(-0.5, 0.5)
    expected = [
        PIL.Image.fromarray(channel).rotate(
            math.degrees(angle), PIL.Image.Resampling[resample.upper()]
        )
        for channel in image
    ]

    stream = Random2DRotation(examples([image]), 0.5, resample, numpy.random.RandomState(2))
    rotated = first(stream)

    assert rotated.dtype == dtype
    numpy.testing.assert_array_equal(rotated, numpy.stack(expected))


def test_rotated_batches_stay_what_they_are():
    images = [gradient(4, 4), gradient(5, 6)]
    assert type(first(Random2DRotation(batches(images)))) is list
    assert first(Random2DRotation(batches(ragged(images)))).dtype == object
    assert first(Random2DRotation(batches(numpy.stack(images[:1])))).shape == (1, 3, 4, 4)
    assert numpy.array_equal(first(Random2DRotation(batches(images), 0))[1], images[1])


# One above the other.


class AsArrays(AgnosticTransformer):
    def transform_any(self, data):
        (images,) = data
        assert all(isinstance(image, numpy.ndarray) for image in images)
        return data


def as_they_are(stream):
    return stream


FILES = [
    encoded(gradient(*shape, channels).transpose(1, 2, 0).squeeze(), kind)
    for shape in [(30, 40), (12, 25), (16, 16)]
    for channels, kind in [(3, "JPEG"), (1, "JPEG"), (1, "PNG"), (4, "PNG")]
] + [encoded(numpy.arange(400, dtype="uint16").reshape(20, 20) * 150)]

CHAINS = {
    "enlarged": lambda decoded, between: MinimumImageDimensions(decoded, (16, 18), "bilinear"),
    "cropped": lambda decoded, between: RandomFixedSizeCrop(
        decoded, (9, 8), numpy.random.RandomState(1)
    ),
    "rotated": lambda decoded, between: Random2DRotation(
        decoded, 1, "bicubic", numpy.random.RandomState(1)
    ),
    "enlarged twice": lambda decoded, between: MinimumImageDimensions(
        between(MinimumImageDimensions(decoded, (14, 14))), (40, 40), "lanczos"
    ),
    "all": lambda decoded, between: RandomFixedSizeCrop(
        between(
            Random2DRotation(
                between(MinimumImageDimensions(decoded, (16, 18), "bicubic")),
                rng=numpy.random.default_rng(2),
            )
        ),
        (13, 17),
        numpy.random.default_rng(1),
    ),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("color_mode", ["RGB", "L", "RGBA", None])
@pytest.mark.parametrize("num_threads", [0, 1, 3])
def test_the_pixels_are_those_that_arrays_between_the_transformers_give(
    chain, color_mode, num_threads
):
    files = FILES if color_mode else FILES[:-1]
    stream = batches(files, ("batch", "bytes"), 5) if num_threads else examples(files, None)

    def items(between):
        decoded = ImagesFromBytes(stream, color_mode, num_threads=max(1, num_threads))
        return [data for (data,) in chain(between(decoded), between).get_epoch_iterator()]

    for found, expected in zip(items(as_they_are), items(AsArrays), strict=True):
        assert type(found) is type(expected)
        for image, arrays in zip(found, expected, strict=True):
            assert image.dtype == arrays.dtype
            numpy.testing.assert_array_equal(image, arrays)


def test_of_a_batch_of_windows_the_whole_images_never_become_arrays():
    decoded = ImagesFromBytes(batches([PHOTOGRAPH] * 8, ("batch", "bytes")))
    crops = RandomFixedSizeCrop(MinimumImageDimensions(decoded, (300, 300)), (64, 64))
    first(crops)

    tracemalloc.start()
    try:
        first(crops)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 3 * 427 * 640


def test_a_users_class_is_given_arrays_and_what_it_gives_is_heeded():
    class Inverted(ImagesFromBytes):
        def transform_source_example(self, source_example, source_name):
            return 255 - super().transform_source_example(source_example, source_name)

    class Marked(RandomFixedSizeCrop):
        def change_example(self, image, source, rng):
            return super().change_example(image * 0 + 7, source, rng)

    stream = examples([encoded(gradient(4, 4).transpose(1, 2, 0))], None)
    inverted = first(RandomFixedSizeCrop(MinimumImageDimensions(Inverted(stream), (2, 2)), (4, 4)))
    numpy.testing.assert_array_equal(inverted, 255 - gradient(4, 4))
    assert (first(Marked(ImagesFromBytes(stream), (2, 2))) == 7).all()


def test_sources_that_only_one_of_them_has_are_arrays_all_the_same():
    files = [encoded(gradient(4, 5).transpose(1, 2, 0))] * 2
    dataset = IndexableDataset({"left": files, "right": files})
    stream = DataStream(dataset, iteration_scheme=SequentialScheme(2, 2))

    decoded = ImagesFromBytes(stream)
    left, right = next(
        RandomFixedSizeCrop(decoded, (2, 2), which_sources=["right"]).get_epoch_iterator()
    )
    assert [(type(image), image.shape) for image in left] == [(numpy.ndarray, (3, 4, 5))] * 2
    assert right.shape == (2, 3, 2, 2)
    left, right = next(RandomFixedSizeCrop(decoded, (2, 2)).get_epoch_iterator())
    assert left.shape == right.shape == (2, 3, 2, 2)


def test_what_cannot_be_decoded_or_cropped_is_named_from_above_too():
    stream = batches([PHOTOGRAPH, PHOTOGRAPH[:5000]], ("batch", "bytes"))
    for num_threads in (1, 2):
        decoded = ImagesFromBytes(stream, num_threads=num_threads)
        for above in (MinimumImageDimensions, RandomFixedSizeCrop):
            with pytest.raises(
                ValueError, match="^ImagesFromBytes: number 1 in a batch of the source 'image' is "
            ):
                first(above(decoded, (8, 8)))
        with pytest.raises(ValueError, match="has 427 x 640 pixels, fewer than the window of 500"):
            first(RandomFixedSizeCrop(decoded, (500, 500)))


# What all have in common.

MAKERS = [
    lambda stream, **more: MinimumImageDimensions(stream, (3, 3), **more),
    lambda stream, **more: RandomFixedSizeCrop(stream, (3, 3), **more),
    lambda stream, **more: Random2DRotation(stream, **more),
]


@pytest.mark.parametrize("make", MAKERS)
def test_other_axes_are_refused_and_none_are_warned_of(make, caplog):
    images = numpy.zeros((2, 4, 4, 3), "uint8")
    with pytest.raises(AxisLabelsMismatchError, match=r"'image' must have the axes \('batch', 'ch"):
        make(batches(images, axes=("batch", "height", "width", "channel")))

    stream = make(batches(numpy.zeros((2, 3, 4, 4), "uint8"), axes=None))
    assert "the axes of 'image' are not labelled" in caplog.text
    assert stream.axis_labels is None
    assert len(first(stream)) == 2
    assert make(batches(numpy.zeros((2, 3, 4, 4), "uint8"))).axis_labels == {"image": AXES}


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_no_image_is_refused_with_the_way_out(make):
    words = r"must be an array of shape \(channel, height, width\); got \(4,\). Name the"
    with pytest.raises(ValueError, match=words):
        first(make(batches(numpy.zeros((2, 4)), axes=None)))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(3, 0, 4), (0, 4, 4)])
def test_images_without_pixels_are_refused(make, shape):
    with pytest.raises(ValueError, match=r"of the source 'image' has no pixels: its shape is \("):
        first(make(examples([numpy.zeros(shape, "uint8")])))


@pytest.mark.parametrize("base", [MinimumImageDimensions, RandomFixedSizeCrop])
def test_a_class_in_fuels_way_is_not_said_to_give_one_item_for_one(base):
    class Twice(base):
        def get_data(self, request=None):
            next(self.child_epoch_iterator)
            return next(self.child_epoch_iterator)

    stream = examples([gradient(4, 4)] * 6)

    assert base(stream, (2, 2)).num_batches == 6
    assert Twice(stream, (2, 2)).num_batches is None
    assert len(list(Twice(stream, (2, 2)).get_epoch_iterator())) == 3


@pytest.mark.parametrize("make", MAKERS[::2])
def test_dtypes_that_pillow_does_not_have_are_refused(make):
    with pytest.raises(ValueError, match="must be uint8, float32 or float64; got int64. Put Cast"):
        first(make(batches(numpy.zeros((2, 3, 2, 2), "int64"))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: MinimumImageDimensions(s, 3), "`minimum_shape` must be a height and a width, a"),
        (lambda s: RandomFixedSizeCrop(s, (2.5, 3)), r"`window_shape` must be .*; got \(2.5, 3\)"),
        (lambda s: RandomFixedSizeCrop(s, "23"), "`window_shape` must be a height .*; got '23'"),
        (lambda s: RandomFixedSizeCrop(s, (0, 3)), r"`window_shape` must be .*; got \(0, 3\)"),
        (
            lambda s: MinimumImageDimensions(s, (3, 3), "bilinaer"),
            "got 'bilinaer'. Did you mean 'b",
        ),
        (lambda s: Random2DRotation(s, resample="lanczos"), "one of nearest, bilinear, bicubic; g"),
        (lambda s: Random2DRotation(s, -1), "`maximum_rotation` must be an angle in radians, at l"),
        (lambda s: Random2DRotation(s, "a"), r"`maximum_rotation` must be an angle.*; got 'a'\.$"),
        (lambda s: Random2DRotation(s, None), r"`maximum_rotation` must be an .*; got None\.$"),
        (lambda s: Random2DRotation(s, rng=3), "Random2DRotation: `rng` must be a RandomState or"),
        (
            lambda s: RandomFixedSizeCrop(s, (3, 3), numpy.random.RandomState(1), seed=1),
            "RandomFixedSizeCrop: give `rng` or `seed`, not both",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(batches(numpy.zeros((2, 3, 4, 4), "uint8")))
