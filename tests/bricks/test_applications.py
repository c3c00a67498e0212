"""Application methods of bricks."""

import copy
import pickle
import threading
import warnings

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.annotations import get_annotations
from bricks.base import Application, Brick, application
from bricks.filter import get_application_call, get_brick
from bricks.graph import ComputationGraph
from bricks.roles import AUXILIARY, COST, INPUT, OUTPUT


class Adder(Brick):
    @application(inputs=["x", "y"], outputs=["total", "difference"])
    def apply(self, x, y=1.0):
        return x + y, x - y

    @application
    def sum_all(self, *terms):
        return sum(terms)

    @application(outputs=["result"])
    def watched(self, application, application_call, x):
        application_call.add_auxiliary_variable(x.sum(), roles=[COST], name="sum")
        application_call.metadata["who"] = application.name
        return 2 * x

    @application(outputs=["a"])
    def too_many(self, x):
        return x, x

    @application
    def fails(self, x):
        raise RuntimeError("inside")


class Doubler(Adder):
    @application(inputs=["x"], outputs=["doubled"])
    def watched(self, x):
        return super().watched(x) + 0.0


class Delegating(Brick):
    def __init__(self, other, **kwargs):
        super().__init__(children=[other], **kwargs)
        self.other = other

    @application
    def apply(self, x, y):
        return self.other.apply(x, y, as_list=True)

    @apply.property("inputs")
    def apply_inputs(self):
        return ["x", "y"]

    @apply.delegate
    def apply_delegate(self):
        return self.other.apply


class Calling(Brick):
    def __init__(self, other, **kwargs):
        super().__init__(**kwargs)
        self.other = other

    @application
    def apply(self, x):
        return self.other.apply(x, as_list=True)[0]


@pytest.fixture
def x():
    return tensor.matrix("x")


@pytest.mark.parametrize("backend", ["xla", "py"])
def test_an_application_computes_what_its_method_computes(x, backend):
    total, difference = Adder().apply(x, y=tensor.scalar("y") * 2)
    function = xla.function(ComputationGraph([total]).inputs, [total, difference], backend=backend)

    given = {"x": numpy.float32([[1, 2]]), "y": numpy.float32(3)}
    results = function(*[given[variable.name] for variable in ComputationGraph([total]).inputs])

    numpy.testing.assert_array_equal(results[0], [[7, 8]])
    numpy.testing.assert_array_equal(results[1], [[-5, -4]])


def test_inputs_and_outputs_are_copies_named_and_annotated_by_brick_and_call(x):
    brick = Adder(name="adder")

    total, _ = brick.apply(x)
    graph = ComputationGraph(total)
    copy_of_x = next(v for v in graph.variables if v.name == "adder_apply_x")

    assert copy_of_x.owner.inputs == [x]
    assert not get_annotations(x)
    assert (copy_of_x.tag.name, copy_of_x.tag.roles) == ("x", [INPUT])
    assert (total.name, total.tag.name, total.tag.roles) == ("adder_apply_total", "total", [OUTPUT])
    call = get_application_call(total)
    assert get_annotations(copy_of_x) == get_annotations(total) == [brick, call]
    assert call.application == brick.apply


def test_varargs_and_unnamed_outputs_are_numbered(x):
    output = Adder().sum_all(x, x)

    names = [variable.name for variable in ComputationGraph(output).variables]
    assert [name for name in names if name and "terms" in name] == [
        "adder_sum_all_terms_0",
        "adder_sum_all_terms_1",
    ]
    assert output.name == "adder_sum_all_output_0"


def test_outputs_come_as_dictionary_or_list_when_asked(x):
    brick = Adder()

    assert list(brick.apply(x, as_dict=True)) == ["total", "difference"]
    assert len(brick.sum_all(x, as_list=True)) == 1
    with pytest.raises(ValueError, match=r"/adder\.apply: give `as_dict` or `as_list`, not both"):
        brick.apply(x, as_dict=True, as_list=True)
    with pytest.raises(ValueError, match=r"/adder\.sum_all: `as_dict` needs a name for each"):
        brick.sum_all(x, as_dict=True)


def test_more_outputs_than_names_are_refused(x):
    with pytest.raises(ValueError, match=r"/adder\.too_many: expected outputs \['a'\], got 2"):
        Adder().too_many(x)


def test_call_id_is_kept_in_the_metadata_of_the_call(x):
    total, _ = Adder().apply(x, call_id="first")

    assert get_application_call(total).metadata == {"call_id": "first"}


def test_application_and_call_are_injected_wherever_they_stand(x):
    brick = Adder()
    output = brick.watched(x)
    call = get_application_call(output)

    assert call.metadata["who"] == "watched"
    (auxiliary,) = ComputationGraph(output).auxiliary_variables
    assert auxiliary.name == "adder_watched_sum"
    assert auxiliary.tag.name == "sum"
    assert auxiliary.tag.roles == [AUXILIARY, COST]
    assert get_brick(auxiliary) is brick


def test_a_method_of_the_parent_class_is_applied_through_super(x):
    output = Doubler().watched(x)

    names = {variable.name for variable in ComputationGraph(output).variables}
    assert {"doubler_watched_result", "doubler_watched_doubled"} <= names


def test_unknown_missing_and_repeated_arguments_are_refused_with_the_path(x):
    brick = Adder()

    with pytest.raises(
        TypeError, match=r"/adder\.apply: unexpected argument 'yy'. Did you mean 'y'"
    ):
        brick.apply(x, yy=3)
    with pytest.raises(TypeError, match=r"/adder\.apply\(x, y=1.0\): missing a required argument"):
        brick.apply()
    with pytest.raises(TypeError, match=r"/adder\.apply.*multiple values for argument 'x'"):
        brick.apply(x, x=x)
    with pytest.raises(TypeError, match=r"too many positional"):
        brick.apply(x, x, x)


def test_attributes_come_from_bound_application_then_property_then_class_then_delegate():
    inner = Adder()
    brick = Delegating(inner)

    assert brick.apply.inputs == ["x", "y"]
    assert brick.apply.outputs == ["total", "difference"]
    inner.apply.outputs = ["left", "right"]
    assert brick.apply.outputs == ["left", "right"]
    assert Adder().apply.outputs == ["total", "difference"]
    brick.apply.inputs = ["x"]
    assert brick.apply.inputs == ["x"]
    with pytest.raises(
        AttributeError, match=r"application /delegating/adder.apply has no attribute"
    ):
        _ = brick.apply.nothing


def test_a_property_cannot_be_set_on_the_class_and_inputs_must_be_arguments():
    with pytest.raises(ValueError, match="'inputs' is computed for each brick"):
        Delegating.apply.inputs = ["x"]
    with pytest.raises(ValueError, match="`inputs` names 'xx', which is no argument.*'x'"):
        Adder().apply.inputs = ["xx"]
    with pytest.raises(TypeError, match="use it bare, or with keyword arguments"):
        application("inputs")


def test_applying_a_brick_that_is_no_child_warns_with_both_paths(x):
    with pytest.warns(UserWarning, match="/calling applies /adder, which is not one of its child"):
        Calling(Adder()).apply(x)


def test_the_stack_of_calls_survives_exceptions(x):
    with pytest.raises(RuntimeError, match="inside"):
        Adder(name="broken").fails(x)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Adder().apply(x)


def test_the_stack_of_calls_belongs_to_one_thread(x):
    inside, done, problems = threading.Event(), threading.Event(), []

    class Slow(Brick):
        @application
        def apply(self, x):
            inside.set()
            done.wait(10)
            return x

    def other():
        inside.wait(10)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                Adder().apply(tensor.matrix())
        except Warning as problem:
            problems.append(problem)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    Slow().apply(x)
    thread.join()

    assert not problems


def test_applications_pickle_and_copy_with_what_was_set_on_them(x):
    brick = Adder()
    brick.apply.outputs = ["left", "right"]
    total, _ = brick.apply(x)

    for clone in (pickle.loads(pickle.dumps(total)), copy.deepcopy(total)):
        call, owner = get_application_call(clone), get_brick(clone)
        assert call.application == owner.apply
        assert call.application.brick is owner is not brick
        assert owner.apply.outputs == ["left", "right"]
        assert call.application.application is Adder.apply
    assert pickle.loads(pickle.dumps(Adder.apply)) is Adder.apply


def test_bound_applications_are_equal_for_the_same_brick_only():
    brick = Adder()

    assert brick.apply == brick.apply
    assert hash(brick.apply) == hash(brick.apply)
    assert brick.apply != Adder().apply
    assert brick.apply != brick.sum_all
    assert isinstance(Adder.apply, Application)


def test_the_original_function_stays_on_the_class_under_an_underscore():
    assert Adder._apply(Adder(), 3, 4) == (7, -1)
    assert Adder.apply.__doc__ is None
