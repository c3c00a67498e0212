import numpy
import pytest
from aesara import tensor

from bricks import Distribute, Fork, Linear, Merge, Parallel, Tanh, xla
from bricks.initialization import Constant, IsotropicGaussian

A = numpy.random.RandomState(0).standard_normal((5, 3)).astype("float32")
B = numpy.random.RandomState(1).standard_normal((5, 4)).astype("float32")


def variables(*names):
    return [tensor.matrix(name) for name in names]


def initialized(brick):
    brick.weights_init, brick.biases_init = IsotropicGaussian(), Constant(1)
    brick.initialize()
    return brick


def test_each_input_has_a_copy_of_the_prototype():
    parallel = initialized(Parallel(["a", "b"], [3, 4], [2, 1], Linear()))
    a, b = variables("a", "b")

    outputs = parallel.apply(b=b, a=a, as_dict=True)
    found = xla.function([a, b], list(outputs.values()))(A, B)

    assert list(outputs) == parallel.apply.inputs == ["a", "b"]
    assert [child.path for child in parallel.children] == [
        "/parallel/linear_a",
        "/parallel/linear_b",
    ]
    for value, source, child in zip(found, (A, B), parallel.children, strict=True):
        numpy.testing.assert_allclose(value, source @ child.W.get_value() + 1, rtol=1e-5)
    assert parallel.get_dim("b") == 4


def test_names_and_sizes_may_be_given_later():
    parallel = Parallel(prototype=Linear(), child_prefix="map")
    with pytest.raises(ValueError, match="/parallel cannot be allocated: 'input_names'"):
        parallel.allocate()
    parallel.input_names = ["a", "b"]
    parallel.input_dims, parallel.output_dims = [3, 4], [2, 1]
    parallel.allocate()

    assert [child.name for child in parallel.children] == ["map_a", "map_b"]
    with pytest.raises(ValueError, match="/parallel: the names cannot be changed after allocation"):
        parallel.input_names = ["c"]


def test_names_that_are_no_list_of_different_names_are_refused():
    for names in ("ab", ["a", "a"]):
        with pytest.raises(ValueError, match="the names must be a list of different names"):
            Parallel(names, [3, 4], [2, 1], Linear())


def test_a_wrong_number_of_sizes_is_refused():
    with pytest.raises(ValueError, match=r"`input_dims` must be a list of 2.* a, b; got \[3\]"):
        Parallel(["a", "b"], [3], [2, 1], Linear()).allocate()


def test_missing_unknown_and_repeated_inputs_are_refused():
    parallel = Parallel(["a", "b"], [3, 4], [2, 1], Linear())
    a, b = variables("a", "b")

    with pytest.raises(TypeError, match=r"/parallel\.apply takes the inputs a, b; missing: b\."):
        parallel.apply(a)
    with pytest.raises(TypeError, match="missing: b; unknown: c"):
        parallel.apply(a, c=b)
    with pytest.raises(TypeError, match="given twice: a"):
        parallel.apply(a, b, a=a)
    with pytest.raises(TypeError, match="unknown: number 3 of 3"):
        parallel.apply(a, b, tensor.matrix("c"))


def test_a_fork_has_several_outputs_of_one_input():
    fork = initialized(Fork(["x", "y"], 3, output_dims=[2, 1]))
    (a,) = variables("a")

    outputs = fork.apply(a, as_dict=True)
    found = xla.function([a], list(outputs.values()))(A)

    assert list(outputs) == ["x", "y"] and fork.apply.inputs == ["input_"]
    assert [child.path for child in fork.children] == ["/fork/fork_x", "/fork/fork_y"]
    for value, child in zip(found, fork.children, strict=True):
        numpy.testing.assert_allclose(value, A @ child.W.get_value() + 1, rtol=1e-5)
    assert (fork.get_dim("input_"), fork.get_dim("x"), fork.get_dim("y")) == (3, 2, 1)
    with pytest.raises(ValueError, match="/fork: the dimension of 'z' is not known"):
        fork.get_dim("z")


def test_a_fork_may_be_told_everything_later():
    fork = Fork()
    fork.output_names, fork.input_dim, fork.output_dims = ["x"], 3, [2]
    fork.allocate()

    assert fork.children[0].W.get_value().shape == (3, 2)


def test_a_source_is_added_to_targets():
    distribute = initialized(Distribute(["a", "b"], "source", [3, 4], 3))
    source, a, b = variables("source", "a", "b")

    outputs = distribute.apply(a=a, source=source, b=b, as_dict=True)
    found = xla.function([source, a, b], list(outputs.values()))(A, A, B)

    assert list(outputs) == ["a", "b"]
    assert distribute.apply.inputs == ["source", "a", "b"]
    for value, target, child in zip(found, (A, B), distribute.children, strict=True):
        numpy.testing.assert_allclose(value, target + A @ child.W.get_value(), rtol=1e-4, atol=1e-5)
    assert (distribute.get_dim("source"), distribute.get_dim("b")) == (3, 4)


def test_a_target_of_another_number_of_axes_is_refused():
    distribute = Distribute(["a"], "source", [3], 3)

    with pytest.raises(ValueError, match=r"/distribute\.apply: `a` and `transformed source` must"):
        distribute.apply(source=tensor.matrix("s"), a=tensor.tensor3("a"))


def test_distribute_may_be_told_everything_later():
    distribute = Distribute()
    with pytest.raises(ValueError, match="'source_name'"):
        distribute.allocate()
    distribute.target_names, distribute.source_name = ["a"], "s"
    distribute.target_dims, distribute.source_dim = [4], 3
    distribute.allocate()

    assert distribute.children[0].W.get_value().shape == (3, 4)


def test_inputs_are_merged_into_a_sum():
    merge = initialized(Merge(["a", "b"], [3, 4], 2))
    a, b = variables("a", "b")

    found = xla.function([a, b], merge.apply(b=b, a=a))(A, B)

    first, second = (child.W.get_value() for child in merge.children)
    numpy.testing.assert_allclose(found, A @ first + B @ second, rtol=1e-4, atol=1e-5)
    assert (merge.get_dim("a"), merge.get_dim("output")) == (3, 2)
    assert merge.apply.outputs == ["output"]


def test_another_prototype_is_copied():
    prototype = Linear(use_bias=False, name="map")
    fork = Fork(["x", "y"], 3, prototype=prototype, output_dims=[2, 2])

    assert prototype not in fork.children
    assert all(not child.use_bias for child in fork.children)


def test_use_bias_reaches_the_children_only_if_it_is_given():
    given = Merge(["a"], [3], 2, use_bias=True)
    given.allocate()
    default = Merge(["a"], [3], 2)
    default.allocate()

    assert given.children[0].use_bias and not default.children[0].use_bias


def test_children_that_were_there_before_stay():
    other = Tanh()
    parallel = Parallel(["a"], [3], [2], Linear(), children=[other])
    parallel.input_names = ["b", "c"]

    assert [child.name for child in parallel.children] == ["tanh", "linear_b", "linear_c"]
