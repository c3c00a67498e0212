import builtins
import io

import numpy
import PIL.Image
import pytest

from fuel_data.utils.pillow import (
    COLOR_MODES,
    Picture,
    change_pixels,
    decode,
    has_16_bits,
    import_pillow,
    pixels_of,
    upper_8_bits,
)


def test_pillow_is_given_and_a_missing_one_is_named_with_the_way_to_get_it(monkeypatch):
    assert import_pillow("x") is PIL.Image
    import_ = builtins.__import__

    def without_pillow(name, *arguments):
        if name.startswith("PIL"):
            raise ImportError(name)
        return import_(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(ImportError, match="^Thumbnails needs Pillow: pip install Pillow"):
        import_pillow("Thumbnails")


@pytest.mark.parametrize("kind", ["PNG", "PPM"])
def test_16_bits_are_known_where_pillow_reads_them_as_32(kind):
    # As older versions read PNG, and all of them PGM.
    image = PIL.Image.fromarray(numpy.array([[0, 1000, 65535]], dtype="int32"))
    image.format = kind

    assert has_16_bits(image, "a file")
    assert numpy.asarray(upper_8_bits(image)).tolist() == [[0, 3, 255]]


@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bits_may_have_either_order(order):
    values = numpy.array([[0, 1000, 65535]], dtype=f"{order}u2")
    mode = "I;16" if order == "<" else "I;16B"
    image = PIL.Image.frombytes(mode, (3, 1), values.tobytes())

    assert has_16_bits(image, "a file")
    assert numpy.asarray(upper_8_bits(image)).tolist() == [[0, 3, 255]]


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_picture_and_its_windows_have_the_pixels_of_its_array(mode):
    channels = len(mode)
    pixels = numpy.arange(channels * 300 * 90).astype("uint8").reshape(channels, 300, 90)
    picture = Picture(PIL.Image.fromarray(pixels.transpose(1, 2, 0).squeeze()))

    assert picture.shape == pixels.shape
    numpy.testing.assert_array_equal(picture.to_array(), pixels)
    assert picture.to_array().flags.writeable
    for top, left, height, width in [(0, 0, 300, 90), (7, 5, 290, 83), (299, 89, 1, 1)]:
        window = picture.window(top, left, height, width)
        expected = pixels[:, top : top + height, left : left + width]
        numpy.testing.assert_array_equal(window, expected)


def test_a_change_is_the_same_for_a_picture_and_its_array():
    pixels = numpy.arange(3 * 5 * 7).astype("uint8").reshape(3, 5, 7)
    picture = Picture(PIL.Image.fromarray(pixels.transpose(1, 2, 0).copy()))

    def enlarge(image):
        return image.resize((20, 30), PIL.Image.Resampling.BICUBIC)

    changed = change_pixels("a test", picture, enlarge)

    assert isinstance(changed, Picture)
    expected = change_pixels("a test", pixels, enlarge)
    assert pixels_of(expected) is expected
    numpy.testing.assert_array_equal(pixels_of(changed), expected)


def test_only_what_is_rgb_or_grey_is_decoded_to_a_picture():
    file = io.BytesIO()
    PIL.Image.new("RGBA", (3, 2), "orange").save(file, "PNG")

    decoded = {mode: decode(file.getvalue(), mode, "it") for mode in (None, "RGB", "L", "1")}

    pictures = {mode for mode, image in decoded.items() if isinstance(image, Picture)}
    assert pictures == {"RGB", "L"}
    shapes = {mode: image.shape for mode, image in decoded.items()}
    assert shapes == {None: (4, 2, 3), "RGB": (3, 2, 3), "L": (1, 2, 3), "1": (1, 2, 3)}


def test_pillow_has_every_mode_that_can_be_asked_for():
    for mode in COLOR_MODES:
        assert PIL.Image.new(mode, (2, 2)).mode == mode
