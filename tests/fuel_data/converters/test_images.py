import io

import numpy
import PIL.Image
import pytest

from fuel_data.converters.images import decode_image, fill_size, open_image, pixels, upright

WIDE = numpy.array([[0, 1000, 30000, 65535]], dtype="uint16")
HIGH_BYTES = [0, 3, 117, 255]
SIDEWAYS = 6


def encoded(values, kind, **options):
    file = io.BytesIO()
    PIL.Image.fromarray(values).save(file, kind, **options)
    return file.getvalue()


def test_an_image_of_too_many_pixels_for_pillow_is_refused_in_words(monkeypatch):
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 1)
    words = r"^a file has too many pixels \(.*4 pixels.*[a-z]\); at most 67,108,864 are read. Scale"

    with pytest.raises(ValueError, match=words):
        open_image(encoded(WIDE, "PNG"), "a file")


def test_the_reason_of_damage_ends_in_one_stop(monkeypatch):
    def fail(*_):
        raise OSError("broken data stream.")

    monkeypatch.setattr(PIL.Image.Image, "convert", fail)

    with pytest.raises(ValueError, match=r"^a file is a damaged image: broken data stream\.$"):
        decode_image(encoded(WIDE.astype("uint8"), "PNG"), "a file")


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_of_16_bits_the_upper_8_are_kept(kind, mode):
    image = decode_image(encoded(WIDE, kind), "a file", mode)

    assert image.dtype == numpy.uint8
    assert image.tolist() == [[HIGH_BYTES]] * len(mode)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_images_of_16_bits_are_turned_and_scaled(kind):
    exif = PIL.Image.Exif()
    exif[0x0112] = SIDEWAYS
    image = open_image(encoded(WIDE, kind, exif=exif), "a file")

    assert pixels(upright(image, "a file"), "a file", "L").tolist() == [[[b] for b in HIGH_BYTES]]
    flat = open_image(encoded(numpy.full((4, 4), 30000, "uint16"), kind), "a file")
    assert pixels(fill_size(flat, "a file", (2, 2)), "a file", "L").tolist() == [[[117] * 2] * 2]


@pytest.mark.parametrize(("dtype", "mode"), [("int32", "I"), ("float32", "F")])
@pytest.mark.parametrize(
    "read",
    [
        lambda content: decode_image(content, "a.tif"),
        lambda content: upright(open_image(content, "a.tif"), "a.tif"),
        lambda content: fill_size(open_image(content, "a.tif"), "a.tif", (2, 2)),
    ],
)
def test_pixels_of_a_range_that_nobody_knows_are_refused(dtype, mode, read):
    content = encoded(numpy.full((2, 2), 0.5).astype(dtype), "TIFF")
    with pytest.raises(
        ValueError, match=f"^a.tif: pixels of mode {mode} have no range of 8 bits; scale them first"
    ):
        read(content)
