import numpy
import pytest
from aesara import tensor

from bricks import MLP, Linear, Tanh
from bricks.annotations import add_annotation
from bricks.model import Model
from bricks.roles import BATCH_NORM_POPULATION_MEAN, add_role
from bricks.summary import Summary
from bricks.utils import shared_floatx


def make_model():
    """A model with five parameters, one of them a scalar of no brick, and statistics."""
    mlp = MLP([Tanh(), None], [64, 2000, 10])
    mean = shared_floatx(numpy.zeros(64), name="mean")
    add_role(mean, BATCH_NORM_POPULATION_MEAN)
    add_annotation(mean, mlp)
    scale = shared_floatx(1.0, name="scale")
    Linear(1, 1).parameters = [scale]  # gives it its role
    return Model(scale * mlp.apply(tensor.matrix("x") - mean))


def test_a_summary_has_a_row_for_each_parameter_and_statistic():
    summary = make_model().summary()

    rows = {row.path: row for row in summary.parameters}
    assert rows["/mlp/linear_0.W"] == (
        "/mlp/linear_0.W", (64, 2000), 128_000, "float32", ("WEIGHT",), 512_000
    )  # fmt: skip
    assert [(row.path, row.shape, row.roles) for row in summary.persistent] == [
        ("/mlp.mean", (64,), ("BATCH_NORM_POPULATION_MEAN",))
    ]
    numbers = 64 * 2000 + 2000 + 2000 * 10 + 10 + 1
    assert summary.num_parameters == numbers
    assert summary.num_bytes == 4 * (numbers + 64)
    assert summary.sizes_by_role() == {"WEIGHT": 148_000, "BIAS": 2010, "PARAMETER": 1}


def test_a_summary_prints_as_a_table_with_totals():
    lines = repr(make_model().summary()).splitlines()

    assert lines[0].split() == ["parameters", "shape", "size", "role", "dtype"]
    assert set(lines[1]) == {"-", " "}
    by_path = {line.split()[0]: line.split()[1:] for line in lines}
    assert by_path["/mlp/linear_0.W"] == ["64", "×", "2000", "128,000", "WEIGHT", "float32"]
    assert by_path["/linear.scale"] == ["scalar", "1", "PARAMETER", "float32"]
    assert lines[8].split() == ["5", "parameters", "150,011", "586.0", "KiB"]
    assert by_path["persistent"] == ["shape", "size", "role", "dtype"]
    assert lines[-1].startswith("1 persistent array")
    assert lines[-1].endswith("  256 bytes")
    assert all(line == line.rstrip() for line in lines)


def test_sizes_stand_below_each_other():
    lines = str(make_model().summary()).splitlines()
    end = lines[0].index("size") + len("size")

    assert {line[end - 1] for line in lines[2:7]} <= set("0123456789")
    assert {line[end : end + 2] for line in lines} == {"  "}


@pytest.mark.parametrize(
    ("num_floats", "memory"), [(1, "4 bytes"), (256, "1.0 KiB"), (300_000, "1.1 MiB")]
)
def test_memory_is_told_in_the_unit_that_suits_it(num_floats, memory):
    array = shared_floatx(numpy.zeros(num_floats), name="array")

    assert str(Summary({"array": array}, {})).endswith(memory)


def test_a_model_without_parameters_says_so():
    summary = Model(Tanh().apply(tensor.matrix("x"))).summary()

    assert summary.num_parameters == 0
    assert str(summary).splitlines()[-1].split() == ["0", "parameters", "0", "0", "bytes"]
