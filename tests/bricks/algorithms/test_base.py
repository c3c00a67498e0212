"""Updates, compiled once and fed by batches whose sources are matched by name."""

import pickle
from collections import OrderedDict

import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.algorithms import GradientDescent, UpdatesAlgorithm
from bricks.roles import PARAMETER, add_role


def shared(value, name):
    return xla.shared(numpy.asarray(value, dtype="float32"), name=name)


def algorithm_of(x=None, **options):
    """Make an algorithm that adds the mean of its source ``x`` to ``total``."""
    x = tensor.fmatrix("x") if x is None else x
    total = shared(0, "total")
    algorithm = UpdatesAlgorithm([(total, total + x.mean(dtype="float32"))], **options)
    algorithm.initialize()
    return algorithm, total


def ones(*shape, dtype="float32"):
    return numpy.ones(shape, dtype=dtype)


def test_a_batch_does_all_updates_once_from_the_old_values():
    a, b = shared(1, "a"), shared(2, "b")
    algorithm = UpdatesAlgorithm([(a, b), (b, a)])
    algorithm.initialize()

    algorithm.process_batch({})

    assert (a.get_value(), b.get_value()) == (2, 1)


@pytest.mark.parametrize("kind", [list, dict, OrderedDict])
def test_updates_are_taken_from_lists_and_dicts_in_their_order(kind):
    a, b = shared(1, "a"), shared(2, "b")

    algorithm = UpdatesAlgorithm(kind([(b, b + 1), (a, a + 1)]))

    assert [target.name for target, _ in algorithm.updates] == ["b", "a"]


def test_numbers_are_taken_as_new_values():
    a = shared(1, "a")
    algorithm = UpdatesAlgorithm([(a, 7)])
    algorithm.initialize()

    algorithm.process_batch({})

    assert a.get_value() == 7


def test_a_variable_cannot_be_updated_twice():
    a = shared(1, "a")
    algorithm = UpdatesAlgorithm([(a, a + 1)])

    with pytest.raises(ValueError, match="UpdatesAlgorithm: a is updated twice.*combine"):
        algorithm.add_updates([(a, a + 2)])


def test_what_is_not_shared_cannot_be_updated():
    with pytest.raises(TypeError, match="only shared variables can be updated; got x"):
        UpdatesAlgorithm([(tensor.fscalar("x"), 1)])


def test_updates_have_to_be_pairs():
    with pytest.raises(TypeError, match="`updates` must be pairs"):
        UpdatesAlgorithm([shared(1, "a")])


def test_a_new_value_of_float64_is_refused_with_the_probable_cause():
    a = shared(1, "a")

    with pytest.raises(TypeError, match="value of a must have dtype float32.*got float64.*numpy"):
        UpdatesAlgorithm([(a, a * numpy.float64(0.1) * tensor.dscalar("x"))])


def test_an_unknown_choice_for_unused_sources_is_refused_with_the_nearest():
    with pytest.raises(
        ValueError, match="`on_unused_sources`.*got 'ignored'. Did you mean 'ignore'"
    ):
        UpdatesAlgorithm([], on_unused_sources="ignored")


def test_updates_added_after_initialize_are_refused():
    algorithm, _ = algorithm_of()
    late = shared(0, "late")

    with pytest.raises(RuntimeError, match="after `initialize`.*got updates of late"):
        algorithm.add_updates([(late, late + 1)])
    with pytest.raises(RuntimeError, match="after `initialize`"):
        algorithm.updates = [(late, late + 1)]


def test_the_same_updates_may_be_added_again_after_initialize():
    algorithm, _ = algorithm_of()
    before = algorithm.updates

    algorithm.add_updates(before)
    algorithm.updates = before

    assert algorithm.updates == before


def test_updates_may_be_replaced_before_initialize():
    a, b = shared(1, "a"), shared(2, "b")
    algorithm = UpdatesAlgorithm([(a, a + 1)])

    algorithm.updates = [(b, b + 1)]

    assert [target for target, _ in algorithm.updates] == [b]


def test_a_batch_before_initialize_is_refused():
    algorithm = UpdatesAlgorithm([])

    with pytest.raises(RuntimeError, match="`initialize` must be called before `process_batch`"):
        algorithm.process_batch({})


def test_a_missing_source_is_refused_with_the_nearest_name():
    algorithm, _ = algorithm_of(tensor.fmatrix("features"))

    with pytest.raises(ValueError, match="input 'features', but the data has no source.*'fetures'"):
        algorithm.process_batch({"fetures": ones(2, 2)})
    with pytest.raises(ValueError, match="input 'features', but the data has no source"):
        algorithm.check_sources(("targets",))


def test_unused_sources_are_refused_by_default():
    algorithm, total = algorithm_of()

    with pytest.raises(ValueError, match="does not use: y. Its inputs are: x. Leave them out"):
        algorithm.process_batch({"x": ones(2, 2), "y": ones(2)})
    assert total.get_value() == 0


def test_unused_sources_are_refused_on_a_later_batch_too():
    algorithm, _ = algorithm_of()
    algorithm.process_batch({"x": ones(2, 2)})

    with pytest.raises(ValueError, match="does not use: y"):
        algorithm.process_batch({"x": ones(2, 2), "y": ones(2)})


def test_unused_sources_are_warned_of_once(caplog):
    algorithm, total = algorithm_of(on_unused_sources="warn")

    for _ in range(3):
        algorithm.process_batch({"x": ones(2, 2), "y": ones(2)})

    assert total.get_value() == 3
    assert [record.getMessage() for record in caplog.records] == [
        "UpdatesAlgorithm: the data has sources that the graph does not use: y. Its inputs are: x."
    ]


def test_unused_sources_are_ignored_on_request(caplog):
    algorithm, total = algorithm_of(on_unused_sources="ignore")

    algorithm.process_batch({"x": ones(2, 2), "y": ones(2)})

    assert total.get_value() == 1
    assert not caplog.records


def test_a_batch_that_is_a_tuple_is_refused_with_the_way_out():
    algorithm, _ = algorithm_of()

    with pytest.raises(TypeError, match=r"must be a dict.*got tuple.*as_dict=True"):
        algorithm.process_batch((ones(2, 2),))


def test_float64_for_a_float32_input_is_refused_with_the_way_out():
    algorithm, total = algorithm_of()

    with pytest.raises(TypeError, match="source 'x' must have dtype float32.*float64.*ForceFloatX"):
        algorithm.process_batch({"x": ones(2, 2, dtype="float64")})
    assert total.get_value() == 0


def test_wide_integers_for_a_narrower_input_are_refused_with_the_way_out():
    algorithm, _ = algorithm_of(tensor.imatrix("x"))

    with pytest.raises(TypeError, match=r"got int64.*Cast\(stream, 'int32', which_sources"):
        algorithm.process_batch({"x": ones(2, 2, dtype="int64")})


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool", "float16"])
def test_a_dtype_whose_values_all_fit_is_cast(dtype):
    algorithm, total = algorithm_of()

    algorithm.process_batch({"x": ones(2, 2, dtype=dtype)})

    assert total.get_value() == 1


def test_a_number_may_feed_a_scalar():
    total = shared(0, "total")
    algorithm = UpdatesAlgorithm([(total, total + tensor.fscalar("rate"))])
    algorithm.initialize()

    algorithm.process_batch({"rate": 0.5})

    assert total.get_value() == 0.5


@pytest.mark.parametrize("value", [2.5, float("nan"), numpy.float64(2.5)])
def test_a_fraction_does_not_feed_an_integer(value):
    total = shared(0, "total")
    algorithm = UpdatesAlgorithm([(total, tensor.cast(tensor.iscalar("count"), "float32"))])
    algorithm.initialize()

    words = r"source 'count' must have dtype int32.*got float64.*Put `Cast\(stream, 'int32'"
    with pytest.raises(TypeError, match=words):
        algorithm.process_batch({"count": value})


@pytest.mark.parametrize("value", [300, -129])
def test_an_integer_feeds_no_dtype_that_cannot_hold_it(value):
    total = shared(0, "total")
    algorithm = UpdatesAlgorithm([(total, tensor.cast(tensor.bscalar("count"), "float32"))])
    algorithm.initialize()

    algorithm.process_batch({"count": -128})
    with pytest.raises(TypeError, match="source 'count' must have dtype int8.*got int64"):
        algorithm.process_batch({"count": value})
    assert total.get_value() == -128


def test_another_number_of_axes_is_refused():
    algorithm, _ = algorithm_of()

    with pytest.raises(ValueError, match=r"'x' must have 2 axes.*\(any, any\).*shape \(2, 3, 4\)"):
        algorithm.process_batch({"x": ones(2, 3, 4)})


def test_another_length_than_the_fixed_one_is_refused():
    algorithm, _ = algorithm_of(tensor.TensorType("float32", (None, 3))("x"))

    algorithm.process_batch({"x": ones(5, 3)})
    with pytest.raises(ValueError, match=r"length \(any, 3\).*got an array of shape \(5, 4\)"):
        algorithm.process_batch({"x": ones(5, 4)})


def test_ragged_sources_are_refused_with_the_way_out():
    algorithm, _ = algorithm_of()
    ragged = numpy.array([ones(2), ones(3)], dtype=object)

    with pytest.raises(TypeError, match="source 'x' must be one array.*`Padding`"):
        algorithm.process_batch({"x": ragged})
    with pytest.raises(TypeError, match="source 'x' must be one array.*`Padding`"):
        algorithm.process_batch({"x": [ones(2), ones(3)]})


def test_an_input_without_a_name_is_refused_at_initialize():
    algorithm = UpdatesAlgorithm([(shared(0, "a"), tensor.fscalar())])

    with pytest.raises(ValueError, match="an input of the graph .* has no name"):
        algorithm.initialize()


def test_two_inputs_of_one_name_are_refused_at_initialize():
    algorithm = UpdatesAlgorithm([(shared(0, "a"), tensor.fscalar("x") + tensor.fscalar("x"))])

    with pytest.raises(ValueError, match="two different inputs of the graph are called 'x'"):
        algorithm.initialize()


def test_an_error_in_the_compiled_function_describes_the_batch():
    x, y = tensor.fvector("x"), tensor.fvector("y")
    total = shared(0, "total")
    algorithm = UpdatesAlgorithm([(total, total + (x * y).sum())])
    algorithm.initialize()

    with pytest.raises(xla.GraphError) as caught:
        algorithm.process_batch({"x": ones(2), "y": ones(3)})

    assert caught.value.__notes__[-1] == "The batch was x: float32 (2,); y: float32 (3,)."


def test_givens_may_stand_in_for_sources():
    x = tensor.fmatrix("x")
    algorithm, total = algorithm_of(
        x, theano_func_kwargs={"givens": [(x, shared(ones(2, 2), "d"))]}
    )

    algorithm.process_batch({})

    assert total.get_value() == 1


def test_the_function_is_there_after_initialize():
    algorithm = UpdatesAlgorithm([])
    assert algorithm.function is None

    algorithm.initialize()

    assert callable(algorithm.function)


def test_an_algorithm_goes_on_after_a_pickle_and_holds_no_compiled_function():
    algorithm, total = algorithm_of()
    algorithm.process_batch({"x": ones(2, 2)})

    copy = pickle.loads(pickle.dumps(algorithm))
    copy.process_batch({"x": ones(2, 2)})
    total_of_copy = copy.updates[0][0]

    assert total.get_value() == 1
    assert total_of_copy.get_value() == 2
    assert pickle.loads(pickle.dumps(algorithm))._function is None


def test_the_state_is_what_is_updated_or_read_but_parameters():
    x, scale, total, weight = (
        tensor.fscalar("x"),
        shared(2, "scale"),
        shared(0, "total"),
        shared(3, "W"),
    )
    add_role(weight, PARAMETER)
    algorithm = UpdatesAlgorithm([(total, total + scale * weight * x), (weight, weight + 1)])

    state = algorithm.get_state_variables()

    assert state == {"algorithm/updates/total": total, "algorithm/shared/scale": scale}


def test_random_keys_are_state():
    noise = xla.RandomStream(seed=1, name="noise").normal((2,))
    total = shared(0, "total")

    state = UpdatesAlgorithm([(total, total + noise.sum())]).get_state_variables()

    assert list(state) == ["algorithm/random/noise.0", "algorithm/updates/total"]


def test_what_default_updates_change_and_read_is_state():
    count, step, total = shared(0, "count"), shared(1, "step"), shared(0, "total")
    count.default_update = count + step

    state = UpdatesAlgorithm([(total, total + count)]).get_state_variables()

    assert list(state) == [
        "algorithm/updates/total",
        "algorithm/shared/count",
        "algorithm/shared/step",
    ]


def test_variables_of_one_name_have_unique_names_in_the_state():
    first, second = shared(0, "count"), shared(0, "count")

    state = UpdatesAlgorithm([(first, first + 1), (second, second + 1)]).get_state_variables()

    assert state == {"algorithm/updates/count": first, "algorithm/updates/count_2": second}


@pytest.mark.parametrize(
    ("algorithm", "keyword", "nearest"),
    [
        (UpdatesAlgorithm, "update", "updates"),
        (UpdatesAlgorithm, "on_unused_source", "on_unused_sources"),
        (GradientDescent, "step_rul", "step_rule"),
        (GradientDescent, "params", "parameters"),
    ],
)
def test_a_misspelt_keyword_is_refused_with_the_nearest(algorithm, keyword, nearest):
    message = rf"{algorithm.__name__}: unexpected argument '{keyword}'\. Did you mean '{nearest}'"
    with pytest.raises(TypeError, match=message):
        algorithm(**{keyword: None})
