"""Pictures say what is in a model, and nothing in them covers or clips anything else."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from aesara import tensor

from bricks import (
    MLP,
    FeedforwardSequence,
    Linear,
    LookupTable,
    Softmax,
    Tanh,
    TiedProjection,
    application,
)
from bricks.base import Brick
from bricks.cost import CategoricalCrossEntropy, MisclassificationRate
from bricks.model import Model
from bricks.pictures import draw_bricks, draw_graph
from bricks.recurrent import SimpleRecurrent

SVG = "{http://www.w3.org/2000/svg}"


class Drawn:
    """What stands in a picture."""

    def __init__(self, picture):
        self.root = ElementTree.fromstring(picture.svg)
        groups = self.root.findall(f"{SVG}g")
        self.texts = [[text.text for text in group.findall(f"{SVG}text")] for group in groups]
        self.boxes = [box(group.find(f"{SVG}rect")) for group in groups]
        self.widths = [
            max(0.62 * float(t.get("font-size")) * len(t.text) for t in g.findall(f"{SVG}text"))
            for g in groups
        ]
        self.kinds = [group.find(f"{SVG}rect").get("fill") for group in groups]
        self.paths = self.root.findall(f"{SVG}path")

    @property
    def titles(self):
        return [lines[0] for lines in self.texts]

    def arrows(self):
        """For each arrow the titles of the boxes that it leaves and enters, and its label."""
        for path in self.paths:
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
            ends = (numbers[0], numbers[1]), (numbers[-2], numbers[-1])
            label = path.find(f"{SVG}title")
            names = [self.titles[self.at(*end)] for end in ends]
            yield (*names, "" if label is None else label.text)

    def at(self, x, y):
        (found,) = [
            i
            for i, (left, top, right, bottom) in enumerate(self.boxes)
            if left - 0.2 <= x <= right + 0.2 and top - 0.2 <= y <= bottom + 0.2
        ]
        return found


def box(rect):
    left, top, width, height = (float(rect.get(n)) for n in ("x", "y", "width", "height"))
    return left, top, left + width, top + height


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def make_classifier():
    """A classifier with a cost and an error rate."""
    x, y = tensor.matrix("features"), tensor.lmatrix("targets")
    y_hat = MLP([Tanh(), Softmax()], [784, 100, 10]).apply(x)
    cost = CategoricalCrossEntropy().apply(y.flatten(), y_hat)
    error = MisclassificationRate().apply(y.flatten(), y_hat)
    cost.name, error.name = "cost", "error_rate"
    return Model([cost, error])


def make_reader():
    """A recurrent brick that reads words and writes some, with one table for both."""
    words, mask = tensor.lmatrix("words"), tensor.matrix("words_mask")
    table = LookupTable(50, 8, name="table")
    net = FeedforwardSequence([table, Linear(8, 6, name="into")], name="input")
    states = SimpleRecurrent(6, Tanh(), name="reader").apply(net.apply(words), mask=mask)
    out = Linear(6, 8, name="out").apply(states)
    return Model(TiedProjection(table, name="scores").apply(out))


def test_the_tree_shows_names_classes_and_shapes():
    drawn = Drawn(make_classifier().draw_bricks())

    assert ["linear_0", "Linear", "W: 784 × 100", "b: 100"] in drawn.texts
    assert ["tanh", "Tanh"] in drawn.texts
    assert sorted(drawn.titles) == sorted(
        ["mlp", "linear_0", "tanh", "linear_1", "softmax"]
        + ["categoricalcrossentropy", "misclassificationrate"]
    )
    children = {(a, b) for a, b, _ in drawn.arrows()}
    assert children == {("mlp", b) for b in ("linear_0", "tanh", "linear_1", "softmax")}


def test_a_shared_brick_is_drawn_once_with_a_dashed_line_from_its_second_parent():
    drawn = Drawn(make_reader().draw_bricks())

    assert drawn.titles.count("table") == 1
    dashed = [path.get("stroke-dasharray") is not None for path in drawn.paths]
    arrows = [(a, b) for a, b, _ in drawn.arrows()]
    assert arrows[dashed.index(True)] == ("scores", "table")
    assert dashed.count(True) == 1


def test_the_graph_shows_which_application_passes_what_to_which():
    drawn = Drawn(make_classifier().draw_graph())

    assert ["mlp/linear_0", "Linear.apply", "float32 ? × 100"] in drawn.texts
    assert set(drawn.arrows()) == {
        ("features", "mlp/linear_0", "input_"),
        ("mlp/linear_0", "mlp/tanh", "input_"),
        ("mlp/tanh", "mlp/linear_1", "input_"),
        ("mlp/linear_1", "mlp/softmax", "input_"),
        # Though the cost is computed from what the softmax was applied to.
        ("mlp/softmax", "categoricalcrossentropy", "y_hat"),
        ("mlp/softmax", "misclassificationrate", "y_hat"),
        ("targets", "categoricalcrossentropy", "y"),
        ("targets", "misclassificationrate", "y"),
        ("categoricalcrossentropy", "cost", "cost"),
        ("misclassificationrate", "error_rate", "error_rate"),
    }


def test_the_graph_of_the_top_bricks_leaves_out_what_is_below_them():
    drawn = Drawn(make_classifier().draw_graph(depth=1))

    assert "mlp" in drawn.titles
    assert not any("linear" in title for title in drawn.titles)
    with pytest.raises(ValueError, match="draw_graph: `depth` must be an integer from 1.*got 0"):
        make_classifier().draw_graph(depth=0)


def test_a_brick_with_a_loop_is_one_box_though_it_calls_others_before_the_loop():
    drawn = Drawn(make_reader().draw_graph())

    assert ["reader", "SimpleRecurrent.apply", "float32 ? × ? × ?"] in drawn.texts
    assert ("words_mask", "reader", "mask") in drawn.arrows()
    assert not any("initial" in line for lines in drawn.texts for line in lines)


def test_what_has_parameters_has_a_colour_of_its_own():
    drawn = Drawn(make_reader().draw_graph(depth=1))
    colours = dict(zip(drawn.titles, drawn.kinds, strict=True))

    assert colours["reader"] == colours["scores"] == colours["input"] != colours["words"]


@pytest.mark.parametrize("make", [make_classifier, make_reader])
@pytest.mark.parametrize("draw", [draw_bricks, draw_graph])
def test_nothing_covers_or_clips_anything(make, draw):
    drawn = Drawn(draw(make()))
    left, top, width, height = map(float, drawn.root.get("viewBox").split())

    for i, one in enumerate(drawn.boxes):
        assert not any(overlap(one, other) for other in drawn.boxes[:i])
        assert one[2] - one[0] > drawn.widths[i]
        assert left < one[0] < one[2] < left + width
        assert top < one[1] < one[3] < top + height
    for path in drawn.paths:
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
        assert left < min(numbers[::2])
        assert max(numbers[::2]) < left + width


def test_a_chain_is_a_straight_line():
    drawn = Drawn(draw_graph(MLP([Tanh()] * 3, [2, 3000, 4, 5]).apply(tensor.matrix("x"))))

    centres = {round((b[0] + b[2]) / 2) for b in drawn.boxes}
    assert len(centres) == 1
    assert all(
        upper[3] < lower[1] for upper, lower in pairwise(sorted(drawn.boxes, key=lambda b: b[1]))
    )


class Odd(Brick):
    """A brick with a name that means something in SVG."""

    @application
    def apply(self, x):
        return x


def test_names_are_escaped_and_pictures_are_saved_and_shown(tmp_path):
    picture = draw_bricks(Odd(name='<b> & "quotes"'))

    picture.save(tmp_path / "odd.svg")

    saved = ElementTree.parse(tmp_path / "odd.svg").getroot()
    assert [text.text for text in saved.iter(f"{SVG}text")] == ['<b> & "quotes"', "Odd"]
    assert picture._repr_svg_() == picture.svg


def test_other_things_than_bricks_are_refused():
    with pytest.raises(TypeError, match="draw_bricks: expected bricks or a Model; got 'mlp'"):
        draw_bricks(["mlp"])


@pytest.mark.parametrize("thing", [Tanh(), ["y"], None])
def test_other_things_than_variables_have_no_graph(thing):
    with pytest.raises(TypeError, match="draw_graph: expected variables or a Model; got .*bricks"):
        draw_graph(thing)


PICTURE = """
import bricks
from aesara import tensor
from bricks import MLP, Tanh
from bricks.pictures import draw_graph
y = MLP([Tanh(), Tanh()], [2, 3, 4]).apply(tensor.matrix("x"))
svg = draw_graph([y, y.sum()]).svg
"""


def test_a_picture_is_the_same_in_every_process():
    here = {}
    exec(PICTURE, here)
    elsewhere = subprocess.run(
        [sys.executable, "-c", PICTURE + "print(svg, end='')"],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
        text=True,
    )

    assert elsewhere.stdout == here["svg"]
