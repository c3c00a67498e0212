import builtins

import numpy
import PIL.Image
import pytest

from fuel_data.utils.pillow import has_16_bits, import_pillow, upper_8_bits


def test_pillow_is_given_and_a_missing_one_is_named_with_the_way_to_get_it(monkeypatch):
    assert import_pillow("x") is PIL.Image
    import_ = builtins.__import__

    def without_pillow(name, *arguments):
        if name.startswith("PIL"):
            raise ImportError(name)
        return import_(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(
        ImportError, match="^Thumbnails needs Pillow: pip install 'firebrick.image.'"
    ):
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
