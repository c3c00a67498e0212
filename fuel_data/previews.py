"""A sheet of examples of an HDF5 file, as a picture."""

import io
import os
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy

from fuel_data.converters.images import open_image
from fuel_data.datasets.hdf5 import H5PYDataset
from fuel_data.datasets.hdf5_files import open_file
from fuel_data.datasets.hdf5_format import class_names, get_all_splits
from fuel_data.utils.pillow import has_16_bits, import_pillow, upper_8_bits

TILE = 112
GAP = 8
LINE = 12
MARGIN = 12
COLUMNS = 8
INK, PAPER, FAINT = (20, 20, 20), (255, 255, 255), (225, 225, 225)
#: A tile has room for so many letters of the font.
LETTERS = 18
MAX_CAPTIONS = 4
#: Whole numbers below this are stretched: as they are, they would be black.
DARK = 64


def preview(
    path: str | os.PathLike[str],
    split: str | None = None,
    sources: Sequence[str] | None = None,
    num_examples: int = 40,
) -> Any:
    """Draw a sheet of examples.

    The examples lie at equal distances over the split. Images are drawn as they are: small ones
    enlarged by whole numbers, large ones scaled down; vectors are drawn as curves, other matrices
    in grey. Numbers, text and classes stand below.

    Parameters
    ----------
    path : path
        An HDF5 file of Fuel's format.
    split : str, optional
        Whose examples; by default those of the first split.
    sources : sequence of str, optional
        What is drawn, by default all that the split has.
    num_examples : int, optional
        How many, at most.

    Returns
    -------
    PIL.Image.Image
        The sheet.

    Raises
    ------
    ImportError
        If Pillow is missing.
    ValueError
        If there is no such split or source, or no example.
    """
    image_module = import_pillow("A preview")
    if num_examples < 1:
        raise ValueError(f"preview: `num_examples` must be at least 1; got {num_examples}.")
    with open_file(path) as h5file:
        splits = get_all_splits(h5file)
        if not splits:
            raise ValueError(f"{os.fspath(path)} has no split, so there is nothing to draw.")
        split = split or splits[0]
        names = class_names(h5file)
    classes = {} if names is None else {"targets": names}
    dataset: Any = H5PYDataset(path, (split,), sources=sources)
    if not dataset.num_examples:
        raise ValueError(f"{os.fspath(path)}: the split {split!r} has no example to draw.")
    places = _places(dataset.num_examples, num_examples)
    state = dataset.open()
    try:
        data = dataset.get_data(state, places)
    finally:
        dataset.close(state)
    labels = dataset.axis_labels or {}
    found = {
        source: _Column(source, list(values), labels.get(source), classes.get(source))
        for source, values in zip(dataset.sources, data, strict=True)
    }
    title = f"{os.path.basename(path)}, {split}: {len(places)} of {dataset.num_examples:,} examples"
    cells = [
        _Cell(
            [tile for column in found.values() if (tile := column.tile(number)) is not None],
            [f"#{place}", *(text for c in found.values() if (text := c.caption(number)))],
        )
        for number, place in enumerate(places)
    ]
    return _sheet(image_module, title, cells)


def _places(num: int, wanted: int) -> list[int]:
    wanted = min(num, wanted)
    return [number * num // wanted for number in range(wanted)]


class _Column:
    """One source of the examples that are drawn."""

    def __init__(
        self,
        source: str,
        values: Sequence[Any],
        labels: Sequence[str] | None,
        classes: Sequence[str] | None,
    ) -> None:
        self.source, self.classes = source, classes
        self.labels = tuple(labels or ())[1:]
        self.values = [_decoded(value) for value in values]
        self.low, self.high = _range([value for value in self.values if _is_numbers(value)])

    def tile(self, number: int) -> numpy.ndarray | None:
        """Give a picture of an example, or None for a number or a text."""
        value = self.values[number]
        if isinstance(value, Exception):
            return None
        if not _is_numbers(value) or value.size < 2 or value.ndim > 3:
            return None
        if value.ndim == 1:
            return None if value.size <= MAX_CAPTIONS else _curve(value, self.low, self.high)
        shown = (value.astype("float64") - self.low) * (255 / (self.high - self.low or 1))
        pixels = numpy.nan_to_num(shown).clip(0, 255).astype("uint8")
        return _in_colour(pixels, self.labels)

    def caption(self, number: int) -> str:
        """Give an example as a text, or nothing if it is a picture."""
        value = self.values[number]
        if isinstance(value, Exception):
            return f"{self.source}: {value}"
        if isinstance(value, (str, bytes)):
            return f"{self.source}: {os.fsdecode(value)}"
        flat = numpy.ravel(value)
        if self.tile(number) is not None or flat.size > MAX_CAPTIONS:
            return "" if self.tile(number) is not None else f"{self.source} {numpy.shape(value)}"
        texts = ", ".join(self._text(item) for item in flat.tolist())
        return texts if self.classes else f"{self.source}: {texts}"

    def _text(self, item: Any) -> str:
        if self.classes and isinstance(item, int) and 0 <= item < len(self.classes):
            return self.classes[item]
        if isinstance(item, bytes):
            return os.fsdecode(item)
        return f"{item:.4g}" if isinstance(item, float) else str(item)


def _is_numbers(value: Any) -> bool:
    return isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biuf"


def _decoded(value: Any) -> Any:
    """Decode what is the bytes of an image file."""
    if isinstance(value, numpy.ndarray) and value.dtype == numpy.uint8 and value.ndim == 1:
        start = value[:8].tobytes()
        if start.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n")):
            try:
                picture = open_image(value.tobytes(), "an image")
                picture.draft("RGB", (2 * TILE, 2 * TILE))
                if has_16_bits(picture, "an image"):
                    picture = upper_8_bits(picture)
                return numpy.asarray(picture.convert("RGB")).transpose(2, 0, 1)
            # Of what is damaged, the reason is shown; Pillow fails on it in many ways.
            except Exception as error:
                return ValueError(f"damaged ({error})")
    return value


def _range(values: Sequence[numpy.ndarray]) -> tuple[float, float]:
    """Give what is drawn black and white: all of the type for bytes, otherwise what there is."""
    finite = [value[numpy.isfinite(value)] for value in map(numpy.atleast_1d, values)]
    finite = [value for value in finite if value.size]
    if not finite:
        return 0.0, 1.0
    low = min(float(value.min()) for value in finite)
    high = max(float(value.max()) for value in finite)
    kind = values[0].dtype
    if kind == numpy.uint8 and high >= DARK:
        return 0.0, 255.0
    if kind.kind in "bu" or (kind.kind == "f" and low >= 0 and high <= 1):
        return 0.0, max(high, 1.0)
    return low, high


def _in_colour(pixels: numpy.ndarray, labels: tuple[str, ...]) -> numpy.ndarray:
    """Give pixels of shape (height, width, 3), whatever the order of the axes."""
    if pixels.ndim == 3:
        channel = labels.index("channel") if "channel" in labels else None
        if channel is None:
            channel = 2 if pixels.shape[2] in (1, 3, 4) and pixels.shape[0] > 4 else 0
        pixels = numpy.moveaxis(pixels, channel, 2)
        pixels = pixels[:, :, :3] if pixels.shape[2] in (3, 4) else pixels[:, :, :1]
    else:
        pixels = pixels[:, :, None]
    return numpy.broadcast_to(pixels, (*pixels.shape[:2], 3))


def _curve(values: numpy.ndarray, low: float, high: float) -> numpy.ndarray:
    """Draw a vector from left to right, over a line at zero if that is in its range."""
    tile = numpy.full((TILE, TILE, 3), 255, dtype="uint8")
    scaled = (values.astype("float64") - low) / (high - low or 1)
    rows = ((1 - numpy.nan_to_num(scaled).clip(0, 1)) * (TILE - 1)).astype(int)
    if low < 0 < high:
        tile[int((1 + low / (high - low)) * (TILE - 1))] = FAINT
    edges = numpy.arange(TILE + 1) * len(values) // TILE
    before = rows[0]
    for column in range(TILE):
        part = rows[edges[column] : max(edges[column] + 1, edges[column + 1])]
        top, bottom = min(part.min(), before), max(part.max(), before)
        tile[top : bottom + 1, column] = (30, 80, 160)
        before = part[-1]
    return tile


class _Cell:
    """An example on the sheet: its pictures beside each other, its captions below."""

    def __init__(self, tiles: Sequence[numpy.ndarray], captions: Sequence[str]) -> None:
        self.tiles = list(tiles)
        self.width = max(1, len(self.tiles)) * (TILE + GAP) - GAP
        letters = LETTERS * max(1, len(self.tiles))
        lines = [line for caption in captions for line in _wrapped(caption, letters)]
        self.lines = lines[: 2 * MAX_CAPTIONS]
        self.height = (TILE + GAP // 2 if self.tiles else 0) + LINE * len(self.lines)


def _wrapped(caption: str, letters: int) -> list[str]:
    """Break a caption into two lines at most; the end of a longer one tells files apart."""
    lines = textwrap.wrap(caption, letters)
    return lines if len(lines) <= 2 else [lines[0], "..." + caption[3 - letters :]]


def _plain(text: str) -> str:
    """Give letters that the font has: it has those of ASCII."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(
        letter if letter.isascii() else "?" for letter in parts if not unicodedata.combining(letter)
    )


def _sheet(image_module: Any, title: str, cells: Sequence[_Cell]) -> Any:
    import PIL.ImageDraw
    import PIL.ImageFont

    width = max(cell.width for cell in cells)
    height = max(cell.height for cell in cells)
    columns = max(1, min(len(cells), COLUMNS * TILE // width or 1))
    rows = -(-len(cells) // columns)
    left, top = width + GAP, height + GAP
    sheet_width = max(2 * MARGIN + columns * left - GAP, 2 * MARGIN + 7 * len(title))
    size = (sheet_width, 2 * MARGIN + 2 * LINE + rows * top - GAP)
    sheet = image_module.new("RGB", size, PAPER)
    drawing, font = PIL.ImageDraw.Draw(sheet), PIL.ImageFont.load_default()
    drawing.text((MARGIN, MARGIN), _plain(title), INK, font)
    for number, cell in enumerate(cells):
        x = MARGIN + number % columns * left
        y = MARGIN + 2 * LINE + number // columns * top
        for place, tile in enumerate(cell.tiles):
            corner = (x + place * (TILE + GAP), y)
            drawing.rectangle((*corner, corner[0] + TILE - 1, y + TILE - 1), None, FAINT)
            picture = _fitted(image_module, tile)
            offset = [(TILE - side) // 2 for side in picture.size]
            sheet.paste(picture, (corner[0] + offset[0], y + offset[1]))
        y += TILE + GAP // 2 if cell.tiles else 0
        for line_number, line in enumerate(cell.lines):
            drawing.text((x, y + line_number * LINE), _plain(line), INK, font)
    return sheet


def _fitted(image_module: Any, tile: numpy.ndarray) -> Any:
    """Enlarge by a whole number so that pixels stay squares, or scale down smoothly."""
    picture = image_module.fromarray(numpy.ascontiguousarray(tile))
    largest = max(picture.size)
    if largest <= TILE:
        factor = TILE // largest
        size = (picture.width * factor, picture.height * factor)
        return picture.resize(size, image_module.Resampling.NEAREST)
    picture.thumbnail((TILE, TILE), image_module.Resampling.LANCZOS)
    return picture


def is_png_name(name: str) -> bool:
    """Tell whether a file may have this name that is written by `png`.

    Parameters
    ----------
    name : str
        Its name or path.

    Returns
    -------
    bool
        Whether it has no suffix, or that of a PNG file.

    Examples
    --------
    >>> [is_png_name(name) for name in ("a.png", "a.PNG", "a", "a.jpg")]
    [True, True, True, False]
    """
    return os.path.splitext(name)[1].lower() in ("", ".png")


def png(sheet: Any) -> bytes:
    """Encode a sheet.

    Parameters
    ----------
    sheet : PIL.Image.Image
        From `preview`.

    Returns
    -------
    bytes
        A PNG file.
    """
    buffer = io.BytesIO()
    sheet.save(buffer, "PNG")
    return buffer.getvalue()
