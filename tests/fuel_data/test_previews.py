"""Sheets of examples: what is drawn where, looked at pixel by pixel."""

import io

import h5py
import numpy
import original_files as original
import PIL.Image
import pytest

from fuel_data.commands.info import main
from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file
from fuel_data.previews import GAP, LINE, MARGIN, TILE, preview

IMAGE_AXES = ("batch", "channel", "height", "width")
TOP = MARGIN + 2 * LINE


def write(path, data, labels=None):
    with new_hdf5_file(path) as h5file:
        fill_hdf5_file(h5file, [("all", source, values) for source, values in data.items()], labels)
    return path


def tile(sheet, column, row=0, height=TILE + GAP // 2 + LINE):
    """Cut a tile out of a sheet with one picture and captions of so many pixels."""
    x, y = MARGIN + column * (TILE + GAP), TOP + row * (height + GAP)
    return numpy.asarray(sheet)[y : y + TILE, x : x + TILE]


def test_small_images_are_enlarged_by_a_whole_number(tmp_path):
    images = numpy.zeros((2, 3, 2, 2), "uint8")
    images[0, 0, 0, 0] = 255
    images[1, :, 1, 1] = 255, 128, 0
    path = write(tmp_path / "x.hdf5", {"features": images}, {"features": IMAGE_AXES})
    sheet = preview(path)

    half = TILE // 2
    first, second = tile(sheet, 0), tile(sheet, 1)
    assert (first[:half, :half] == (255, 0, 0)).all() and not first[half:].any()
    assert (second[half:, half:] == (255, 128, 0)).all() and not second[:, :half].any()


def test_axes_are_found_by_their_labels(tmp_path):
    images = numpy.zeros((1, 4, 2, 3), "uint8")
    images[0, 3, 0] = 200, 100, 50
    axes = {"features": ("batch", "height", "width", "channel")}
    sheet = preview(write(tmp_path / "x.hdf5", {"features": images}, axes))

    # 4 rows and 2 columns, enlarged 28 times: 112 x 56 pixels in the middle of the tile.
    assert (tile(sheet, 0)[84:112, 28:56] == (200, 100, 50)).all()


@pytest.mark.parametrize(
    ("values", "white"),
    [
        (numpy.array([[[0, 16]]], "uint8"), 16),
        (numpy.array([[[0.0, 1.0]]], "float32"), 1),
        (numpy.array([[[-3.0, 5.0]]], "float64"), 5),
        (numpy.array([[[False, True]]]), 1),
    ],
)
def test_dark_numbers_floats_and_booleans_are_stretched_to_black_and_white(tmp_path, values, white):
    drawn = tile(preview(write(tmp_path / "x.hdf5", {"x": values})), 0)

    middle = drawn[TILE // 2]
    assert (middle[0] == 0).all() and (middle[-1] == 255).all()


def test_a_vector_is_a_curve_over_its_range(tmp_path):
    values = numpy.linspace(-1, 1, 1000)[None]
    drawn = tile(preview(write(tmp_path / "x.hdf5", {"sound": values})), 0)

    blue = (drawn == (30, 80, 160)).all(axis=2)
    heights = blue.argmax(axis=0)
    assert blue.any(axis=0).all()
    # From the lower left to the upper right, on the diagonal.
    assert numpy.abs(heights - numpy.arange(TILE)[::-1]).max() <= 2


def test_examples_lie_at_equal_distances_and_stand_in_rows(tmp_path):
    images = numpy.arange(100, 200, dtype="uint8")[:, None, None, None].repeat(4, 2).repeat(4, 3)
    path = write(tmp_path / "x.hdf5", {"features": images}, {"features": IMAGE_AXES})
    sheet = preview(path, num_examples=10)

    shades = [tile(sheet, number % 8, number // 8)[50, 50, 0] for number in range(10)]
    assert shades == [100 + 10 * number for number in range(10)]


def test_ragged_encoded_and_damaged_images_and_captions_are_drawn(tmp_path, capsys):
    jpeg = original.image(300, 200, 1)
    pictures = [original.decoded(jpeg), original.decoded(original.image(20, 40, 2))]
    encoded = [jpeg, jpeg[:300]]
    data = {"encoded_images": encoded, "features": pictures, "targets": numpy.array([[1], [0]])}
    data["note"] = ["first", "second " * 20]
    path = write(tmp_path / "x.hdf5", data)
    with h5py.File(path, "r+") as h5file:
        h5file["class_names"] = [b"cup", b"owl"]
    target = tmp_path / "sheet.png"

    assert main([str(path), "--preview", str(target), "--sources", "encoded_images"]) == 0

    assert capsys.readouterr().out == f"{target}: {target.stat().st_size:,} bytes\n"
    with PIL.Image.open(target) as sheet:
        drawn = numpy.asarray(sheet)[TOP : TOP + TILE, MARGIN : MARGIN + TILE]
    expected = PIL.Image.open(io.BytesIO(jpeg)).resize((75, 112))
    shown = drawn[:, 18:93].astype(float)
    assert numpy.abs(shown - numpy.asarray(expected)).mean() < 10
    whole = preview(path)
    assert whole.width > 3 * TILE


def test_letters_that_the_font_lacks_are_drawn_as_near_as_can_be(tmp_path):
    def drawn(text):
        path = write(tmp_path / "x.hdf5", {"x": [text, text]})
        return numpy.asarray(preview(path))

    numpy.testing.assert_array_equal(drawn("naïve 猫"), drawn("naive ?"))
    assert not numpy.array_equal(drawn("naive ?"), drawn("native ?"))


def test_encoded_images_of_16_bits_are_drawn_in_their_shades(tmp_path):
    file = io.BytesIO()
    PIL.Image.fromarray(numpy.full((300, 300), 30000, "uint16")).save(file, "PNG")

    drawn = tile(preview(write(tmp_path / "x.hdf5", {"x": [file.getvalue()] * 2})), 0)

    assert drawn[TILE // 2, TILE // 2].tolist() == [30000 >> 8] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "trian"], "has no split 'trian'. Known: all"),
        (["--sources", "feature"], "'feature'"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(tmp_path, capsys, arguments, message):
    path = write(tmp_path / "x.hdf5", {"features": numpy.zeros((2, 3))})
    target = tmp_path / "x.png"

    assert main([str(path), "--preview", str(target), *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not target.exists()
