"""Bricks: their tree, allocation, initialization, configuration."""

import copy
import inspect
import pickle
import pydoc

import numpy
import pytest
from aesara import tensor

from bricks.base import (
    Brick,
    NoneAllocation,
    NoneInitialization,
    application,
    args_to_kwargs,
    create_unbound_method,
    lazy,
    rename_function,
)
from bricks.filter import get_brick
from bricks.roles import PARAMETER
from bricks.utils import shared_floatx_nans


class Table(Brick):
    @lazy(allocation=["dim"], initialization=["value"])
    def __init__(self, dim, value, scale=1, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.value, self.scale = dim, value, scale

    def _allocate(self):
        self.parameters.append(shared_floatx_nans((self.dim,), name="W"))

    def _initialize(self):
        (W,) = self.parameters
        W.set_value(numpy.full(W.get_value().shape, self.value, dtype=W.dtype))

    @application(outputs=["output"])
    def apply(self, x):
        return x * self.parameters[0]

    def get_dim(self, name):
        return self.dim if name == "output" else super().get_dim(name)


class Holder(Brick):
    def __init__(self, tables, dim=None, value=None, **kwargs):
        super().__init__(children=tables, **kwargs)
        self.dim, self.value = dim, value

    def _push_allocation_config(self):
        for child in self.children:
            if self.dim is not None:
                child.dim = self.dim

    def _push_initialization_config(self):
        for child in self.children:
            if self.value is not None:
                child.value = self.value


class Exacting(Brick):
    def __init__(self, height, name=None):
        super().__init__(name=name)
        self.height = height


class LazyLast(Table):
    @lazy(allocation=["dim"])
    def __init__(self, scale, dim, *rest, **kwargs):
        self.rest = rest
        super().__init__(dim, scale=scale, **kwargs)


def values(brick):
    return brick.parameters[0].get_value().tolist()


def test_a_brick_is_called_by_its_class_in_lower_case():
    assert Table().name == "table"
    assert Table(name="other").name == "other"


@pytest.mark.parametrize("name", ["a/b", "a.b", "", 3])
def test_names_that_would_break_paths_are_refused(name):
    with pytest.raises(ValueError, match="Table: `name` must be text without '/' and '.'"):
        Table(name=name)


def test_unknown_arguments_of_a_constructor_name_the_nearest():
    with pytest.raises(
        TypeError, match=r"Table \(name='t'\): unexpected argument 'dimm'. Did.*'dim'"
    ):
        Table(3, name="t", dimm=4)
    with pytest.raises(TypeError, match="Exacting: unexpected argument 'heigth'.*'height'"):
        Exacting(heigth=3)


def test_lazy_arguments_may_be_missing_and_are_false():
    brick = Table()

    assert brick.dim is NoneAllocation
    assert brick.value is NoneInitialization
    assert not brick.dim
    assert not brick.value
    assert brick.allocation_args == ["dim"]
    assert brick.initialization_args == ["value"]
    assert pickle.loads(pickle.dumps(NoneAllocation)) is NoneAllocation
    assert copy.deepcopy(brick).dim is NoneAllocation


def test_lazy_constructors_lose_no_positional_argument():
    brick = Table(3, 0.5, 7)
    last = LazyLast(2, 3, "x", "y")

    assert (brick.dim, brick.value, brick.scale) == (3, 0.5, 7)
    assert (last.scale, last.dim, last.rest) == (2, 3, ("x", "y"))
    assert last.allocation_args == ["dim"]
    with pytest.raises(TypeError, match="too many positional"):
        Table(1, 2, 3, 4)


def test_signatures_show_what_constructors_take_and_which_arguments_may_come_later():
    class Before(Brick):
        @lazy(allocation=["dim"])
        def __init__(self, dim, required, **kwargs):
            super().__init__(**kwargs)

    assert str(inspect.signature(Table)) == (
        "(dim=NoneAllocation, value=NoneInitialization, scale=1, **kwargs)"
    )
    assert list(inspect.signature(Holder).parameters) == ["tables", "dim", "value", "kwargs"]
    assert str(inspect.signature(Before)) == "(dim, required, **kwargs)"
    assert inspect.signature(Table).bind().arguments == {}
    assert "dim=NoneAllocation" in pydoc.render_doc(Table)


def test_missing_lazy_arguments_are_named_with_the_path_when_needed():
    holder = Holder([Table()])

    with pytest.raises(ValueError, match="/holder/table cannot be allocated: 'dim' not set"):
        holder.allocate()
    holder.dim = 3
    holder.push_allocation_config()
    with pytest.raises(ValueError, match="/holder/table cannot be initialized: 'value' not set"):
        holder.initialize()


def test_allocation_makes_parameters_of_nan_with_role_and_annotation():
    brick = Table(2, 1.0)
    with pytest.raises(AttributeError, match="/table has no parameters yet. Call `allocate"):
        _ = brick.parameters

    brick.allocate()

    (W,) = brick.parameters
    assert numpy.isnan(values(brick)).all()
    assert W.tag.roles == [PARAMETER]
    assert get_brick(W) is brick
    assert brick.allocated
    assert not brick.initialized


def test_applying_allocates_and_initializing_pushes_and_sets():
    brick = Table(2)
    brick.apply(tensor.matrix())
    assert brick.allocated

    holder = Holder([brick], value=3)
    holder.initialize()

    assert values(brick) == [3, 3]
    assert holder.initialized
    assert brick.initialized
    assert holder.initialization_config_pushed


def test_what_is_set_between_pushing_and_initializing_wins():
    one, two = Table(name="one"), Table(name="two")
    holder = Holder([one, two], dim=2, value=3)

    holder.push_allocation_config()
    holder.push_initialization_config()
    two.dim, two.value = 1, 5
    holder.initialize()

    assert values(one) == [3, 3]
    assert values(two) == [5]


def test_a_failed_push_is_not_taken_for_done():
    class Failing(Table):
        def _push_allocation_config(self):
            raise RuntimeError("cannot push")

    holder = Holder([Failing(2, 1)])

    with pytest.raises(RuntimeError, match="cannot push"):
        holder.allocate()
    assert not holder.allocation_config_pushed


def test_a_second_parent_does_not_reallocate_or_initialize_again_a_shared_child():
    table = Table(2)
    first = Holder([table], value=1, name="first")
    first.initialize()
    table.parameters[0].set_value(numpy.float32([7, 8]))
    W = table.parameters[0]

    second = Holder([table], value=2, name="second")
    second.allocate()
    second.initialize()

    assert table.parameters[0] is W
    assert values(table) == [7, 8]


def test_allocating_a_brick_by_itself_and_then_by_its_parent_keeps_the_parameters():
    table = Table(2, 1)
    table.initialize()
    W = table.parameters[0]

    Holder([table]).allocate()

    assert table.parameters[0] is W


def test_allocating_and_initializing_again_starts_anew_where_the_parent_is_the_first():
    table = Table(2)
    first, second = Holder([table], value=1), Holder([table], value=1)
    first.initialize()
    second.initialize()
    W = table.parameters[0]

    second.allocate()
    assert table.parameters[0] is W
    first.allocate()
    assert table.parameters[0] is not W
    assert numpy.isnan(values(table)).all()
    first.initialize()
    assert values(table) == [1, 1]


def test_a_configuration_that_contradicts_the_allocated_one_is_refused():
    table = Table(2, 1)
    table.allocate()

    with pytest.raises(
        ValueError, match="/holder/table was allocated with dim=2, and /holder now.* dim=5"
    ):
        Holder([table], dim=5).allocate()


def test_children_know_their_parents_and_lose_them():
    table = Table()
    holder = Holder([table], name="a")
    other = Holder([], name="b")

    other.children.append(table)
    assert table.parents == [holder, other]
    other.children[0] = Table()
    assert table.parents == [holder]
    holder.children = []
    assert table.parents == []


def test_the_path_goes_through_the_first_parent_and_a_later_one_changes_nothing():
    table = Table(2, name="table")
    inner = Holder([table], name="z")
    Holder([inner], name="top")

    assert table.path == "/top/z/table"
    Holder([table], name="a")
    assert table.path == "/top/z/table"
    table.allocate()
    assert table.get_hierarchical_name(table.parameters[0]) == "/top/z/table.W"
    assert table.get_hierarchical_name(table.parameters[0], "|") == "|top|z|table.W"
    assert [brick.name for brick in table.get_unique_path()] == ["top", "z", "table"]


def test_a_brick_among_its_own_ancestors_is_an_error_in_words():
    holder = Holder([], name="loop")
    holder.children.append(holder)

    with pytest.raises(ValueError, match="loop: the brick is among its own ancestors"):
        _ = holder.path


def test_dimensions_that_a_brick_does_not_know_are_refused_with_its_path():
    table = Table(3)

    assert table.get_dims(["output", "output"]) == [3, 3]
    with pytest.raises(ValueError, match="/table: the dimension of 'input' is not known"):
        table.get_dim("input")


def test_trees_pickle_and_copy_with_values_parents_and_flags():
    holder = Holder([Table(2, name="one"), Table(2, name="two")], value=4)
    holder.initialize()

    for clone in (pickle.loads(pickle.dumps(holder)), copy.deepcopy(holder)):
        assert [child.name for child in clone.children] == ["one", "two"]
        assert all(child.parents == [clone] for child in clone.children)
        assert values(clone.children[1]) == [4, 4]
        assert get_brick(clone.children[0].parameters[0]) is clone.children[0]
        assert clone.initialized
        clone.children[0].parameters[0].set_value(numpy.float32([0, 0]))
    assert values(holder.children[0]) == [4, 4]


def test_decorators_of_a_class_see_its_namespace():
    def give_answer(mcs, name, bases, namespace):
        namespace["answer"] = (name, bases)

    class Decorated(Table):
        decorators = [give_answer]

    assert Decorated.answer == ("Decorated", (Table,))


def test_small_helpers_for_functions():
    def function(a, b=2):
        return a + b

    assert args_to_kwargs((1,), function) == {"a": 1}
    assert create_unbound_method(function, Table) is function
    assert rename_function(function, "other").__name__ == "other"
    assert function.__qualname__.endswith(".other")
