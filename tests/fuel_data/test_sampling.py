from collections import Counter

import h5py
import numpy
import pytest

from fuel_data.datasets import H5PYDataset, IndexableDataset
from fuel_data.schemes import (
    SampledExampleScheme,
    SampledScheme,
    WeightedExampleScheme,
    WeightedScheme,
)
from fuel_data.streams import DataStream


def requests(scheme, epoch=0):
    return list(scheme.get_request_iterator(epoch))


def flat(scheme, epoch=0):
    return [index for request in requests(scheme, epoch) for index in request]


def test_examples_are_drawn_with_replacement_each_as_likely_as_the_others():
    drawn = flat(SampledScheme(10, batch_size=100, num_examples=20_000))

    assert len(drawn) == 20_000
    counts = numpy.bincount(drawn, minlength=10)
    # Chi-squared with 9 degrees of freedom is above 27.9 once in a thousand times.
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9


def test_examples_are_drawn_in_proportion_to_weights():
    weights = numpy.array([0, 3, 1, 0, 4, 2, 0])
    drawn = flat(WeightedScheme(weights, batch_size=64, num_examples=20_000))

    counts = numpy.bincount(drawn, minlength=7)
    expected = 20_000 * weights[weights > 0] / 10
    assert counts[weights == 0].sum() == 0
    # Chi-squared with 3 degrees of freedom is above 16.3 once in a thousand times.
    assert ((counts[weights > 0] - expected) ** 2 / expected).sum() < 16.3


def test_rounding_does_not_draw_what_has_weight_0():
    # The smallest number above 0: half of the draws round up to it.
    assert set(flat(WeightedScheme([0, 5e-324, 0], 40, 40))) == {1}


def test_an_epoch_has_as_many_draws_as_asked_for_or_as_there_are_examples():
    assert list(map(len, requests(SampledScheme(5, 2)))) == [2, 2, 1]
    assert list(map(len, requests(WeightedScheme([1, 2, 3], 2, num_examples=7)))) == [2, 2, 2, 1]
    assert len(requests(SampledExampleScheme(5, 12))) == 12
    assert len(requests(WeightedExampleScheme([1, 2, 3]))) == 3
    assert requests(SampledScheme(0, 2)) == requests(SampledScheme(3, 2, 0)) == []
    scheme = WeightedScheme([1, 2, 3], 2, num_examples=7)
    assert (scheme.num_examples, scheme.num_requests) == (7, 4)


def test_only_the_examples_that_are_named_are_drawn_and_as_python_ints():
    drawn = flat(SampledScheme([3, 7, 8], 4, num_examples=60))

    assert set(drawn) == {3, 7, 8}
    assert {type(index) for index in drawn} == {int}
    assert {type(index) for index in requests(WeightedExampleScheme([1, 1]))} == {int}


def test_each_epoch_draws_anew_and_each_run_the_same():
    for make in (
        lambda s: SampledScheme(50, 8, seed=s),
        lambda s: WeightedScheme([1] * 50, 8, seed=s),
    ):
        assert requests(make(1)) == requests(make(1))
        assert requests(make(1)) != requests(make(1), epoch=1)
        assert requests(make(1)) != requests(make(2))


def test_any_position_is_reached_at_once():
    scheme = WeightedScheme(range(1, 1001), 3, num_examples=10**9)
    iterator = scheme.get_request_iterator(0)
    iterator.set_position(333_333_332)

    assert iterator.get_position() == 333_333_332
    assert len(next(iterator)) == 3
    assert len(next(iterator)) == 1
    assert next(iterator, None) is None


@pytest.mark.parametrize("in_memory", [True, False])
def test_data_sets_answer_requests_with_an_example_twice(tmp_path, in_memory):
    path = tmp_path / "numbers.hdf5"
    with h5py.File(path, "w") as file:
        file["x"] = numpy.arange(4)
        rows = {"train": {"x": (0, 4)}}
        file.attrs["split"] = H5PYDataset.create_split_array(rows)
    dataset = H5PYDataset(path, ("train",), load_in_memory=in_memory)
    scheme = WeightedScheme([1, 0, 2, 3], 50)

    expected = requests(scheme)
    assert max(Counter(expected[0]).values()) > 1
    for data in (dataset, IndexableDataset({"x": numpy.arange(4)})):
        assert [x.tolist() for (x,) in DataStream(data, scheme)] == expected


def test_weights_and_seed_are_part_of_what_a_pipeline_is():
    dataset = IndexableDataset({"x": numpy.arange(3)})
    schemes = [
        WeightedScheme([1, 1, 1], 2),
        WeightedScheme([1, 1, 2], 2),
        WeightedScheme([1, 1, 1], 2, seed=8),
        WeightedScheme([1, 1, 1], 2, 9),
        SampledScheme(3, 2),
    ]

    assert len({DataStream(dataset, scheme).digest() for scheme in schemes}) == 5
    assert repr(schemes[1]) == "WeightedScheme(examples=3, batch_size=2, num_draws=3, seed=1)"


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [numpy.nan, 1], [[1, 2]], [numpy.inf]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="^WeightedScheme: `weights` must be one number for each"):
        WeightedScheme(weights, 2)
    with pytest.raises(ValueError, match="^WeightedExampleScheme: `weights` must be one number"):
        WeightedExampleScheme(weights)


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(
        ValueError, match="SampledScheme: `num_examples` must be at least 0.*got -1"
    ):
        SampledScheme(3, 2, -1)
    with pytest.raises(ValueError, match="SampledExampleScheme: .*none to draw from; got 4"):
        SampledExampleScheme(0, 4)
    with pytest.raises(ValueError, match="WeightedScheme: `batch_size` must be .* got 0"):
        WeightedScheme([1], 0)


def test_weights_whose_sum_is_infinite_are_refused():
    with pytest.raises(ValueError, match="WeightedScheme: `weights` must be one number for each"):
        WeightedScheme([1e308, 1e308], 2)
