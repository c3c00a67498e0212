import numpy
import pytest

from fuel_data.config_parser import config
from fuel_data.requests import open_requests
from fuel_data.schemes import (
    ConcatenatedScheme,
    ConstantScheme,
    IterationScheme,
    PositionedScheme,
    SequentialExampleScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
    cross_validation,
)


def requests(scheme):
    return list(scheme.get_request_iterator())


def test_sequential_batches_are_lists_and_the_last_may_be_short():
    assert requests(SequentialScheme(5, 2)) == [[0, 1], [2, 3], [4]]
    assert requests(SequentialScheme([3, 1, 2], 2)) == [[3, 1], [2]]
    assert requests(SequentialScheme(numpy.array([3, 1]), 2)) == [[3, 1]]
    assert requests(SequentialScheme(range(2, 8, 2), 2)) == [[2, 4], [6]]
    assert requests(SequentialScheme(iter([4, 5]), 1)) == [[4], [5]]
    assert requests(SequentialScheme(0, 2)) == requests(SequentialScheme([], 2)) == []


def test_batches_with_drop_last_leave_the_short_batch_out():
    assert requests(SequentialScheme(5, 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert requests(SequentialScheme(4, 2, drop_last=True)) == [[0, 1], [2, 3]]
    scheme = ShuffledScheme(7, 3, drop_last=True)
    assert (scheme.num_requests, scheme.num_examples) == (2, 6)
    assert [len(request) for request in requests(scheme)] == [3, 3]


def test_sequential_examples_are_ints():
    assert requests(SequentialExampleScheme(3)) == [0, 1, 2]
    assert requests(SequentialExampleScheme([5, 4])) == [5, 4]


def test_shuffled_batches_have_every_example_once_as_python_ints():
    scheme = ShuffledScheme(10, 4)
    batches = requests(scheme)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(index for batch in batches for index in batch) == list(range(10))
    assert {type(index) for batch in batches for index in batch} == {int}


def test_shuffled_schemes_shuffle_the_examples_that_they_are_given():
    assert sorted(requests(ShuffledExampleScheme([7, 5, 5]))) == [5, 5, 7]
    assert sorted(requests(ShuffledExampleScheme(range(2, 6)))) == [2, 3, 4, 5]


def test_each_epoch_has_another_order_and_each_run_the_same():
    scheme = ShuffledExampleScheme(20)
    epochs = [requests(scheme), requests(scheme)]
    assert epochs[0] != epochs[1]
    assert [requests(scheme) for scheme in [ShuffledExampleScheme(20)] for _ in range(2)] == epochs
    assert list(scheme.get_request_iterator(epoch=0)) == epochs[0]
    assert requests(scheme) == epochs[1]


def test_two_schemes_with_one_seed_give_one_order_so_that_parallel_data_stay_aligned():
    assert requests(ShuffledExampleScheme(20)) == requests(ShuffledExampleScheme(20))
    assert requests(ShuffledExampleScheme(20)) != requests(ShuffledExampleScheme(20, seed=2))


def test_the_seed_is_read_when_the_scheme_is_made():
    config.default_seed = 12
    try:
        scheme = ShuffledExampleScheme(20)
    finally:
        del config.default_seed
    assert scheme.seed == 12
    assert ShuffledExampleScheme(20).seed == 1


def test_sorted_indices_are_sorted_in_each_batch_only():
    plain = requests(ShuffledScheme(10, 4))
    assert requests(ShuffledScheme(10, 4, sorted_indices=True)) == [sorted(b) for b in plain]


@pytest.mark.parametrize("make", [numpy.random.RandomState, numpy.random.default_rng])
def test_a_generator_of_the_user_shuffles_as_in_fuel(make):
    rng, own = make(3), make(3)
    scheme = ShuffledExampleScheme(12, rng=rng)
    for _ in range(2):
        expected = list(range(12))
        own.shuffle(expected)
        assert requests(scheme) == expected


def test_rng_must_be_a_generator_and_not_come_with_a_seed():
    with pytest.raises(ValueError, match="ShuffledScheme: `rng` must be .*; got 3. Give a"):
        ShuffledScheme(10, 2, rng=3)
    with pytest.raises(ValueError, match="give `rng` or `seed`, not both"):
        ShuffledExampleScheme(10, numpy.random.RandomState(1), seed=2)


def test_a_constant_scheme_asks_for_the_same_number_until_it_has_all():
    assert requests(ConstantScheme(3, num_examples=7)) == [3, 3, 1]
    assert requests(ConstantScheme(3, num_examples=6)) == [3, 3]
    assert requests(ConstantScheme(3, times=2)) == [3, 3]
    iterator = ConstantScheme(3).get_request_iterator()
    assert [next(iterator) for _ in range(100)] == [3] * 100


def test_a_constant_scheme_over_nothing_asks_for_nothing():
    assert requests(ConstantScheme(3, num_examples=0)) == []
    assert requests(ConstantScheme(3, times=0)) == []


def test_a_constant_scheme_takes_one_limit():
    with pytest.raises(ValueError, match="give `num_examples` or `times`, not both; got 5 and 2"):
        ConstantScheme(3, num_examples=5, times=2)
    with pytest.raises(ValueError, match="`times` must be at least 0; got -1"):
        ConstantScheme(3, times=-1)


def test_concatenated_schemes_come_one_after_the_other():
    scheme = ConcatenatedScheme([SequentialScheme(2, 1), SequentialScheme([5, 6, 7], 2)])
    assert requests(scheme) == [[0], [1], [5, 6], [7]]
    assert (scheme.num_requests, scheme.num_examples, scheme.requests_examples) == (4, 5, False)
    empty = ConcatenatedScheme([SequentialScheme(0, 1), SequentialScheme(1, 1)])
    assert requests(empty) == [[0]]


def test_concatenated_shuffled_schemes_do_not_share_keys():
    first, second = ShuffledExampleScheme(20), ShuffledExampleScheme(20)
    both = requests(ConcatenatedScheme([first, second]))
    assert both[:20] != both[20:]


def test_concatenated_schemes_must_ask_for_the_same_things():
    with pytest.raises(ValueError, match="must all ask for examples, or all for batches; got"):
        ConcatenatedScheme([SequentialScheme(2, 1), SequentialExampleScheme(2)])
    with pytest.raises(ValueError, match=r"got \[\]"):
        ConcatenatedScheme([])


def test_cross_validation_takes_each_fold_out_once():
    folds = list(cross_validation(SequentialExampleScheme, 6, 3))
    assert [(requests(training), requests(validation)) for training, validation in folds] == [
        ([2, 3, 4, 5], [0, 1]),
        ([0, 1, 4, 5], [2, 3]),
        ([0, 1, 2, 3], [4, 5]),
    ]


def test_cross_validation_that_is_not_strict_gives_the_sizes():
    folds = list(cross_validation(SequentialScheme, 5, 2, strict=False, batch_size=2))
    assert [size for _, _, size in folds] == [2, 3]
    assert requests(folds[1][0]) == [[0, 1]]


def test_cross_validation_refuses_unequal_folds_and_too_many_when_it_is_called():
    with pytest.raises(ValueError, match="5 examples make no 2 equal folds. Give strict=False"):
        cross_validation(SequentialExampleScheme, 5, 2)
    with pytest.raises(ValueError, match="`num_folds` must be between 1 and `num_examples`, which"):
        cross_validation(SequentialExampleScheme, 5, 6)


@pytest.mark.parametrize("batch_size", [0, -1, 2.0, None])
def test_a_batch_size_must_be_a_whole_number_above_0(batch_size):
    with pytest.raises(
        ValueError, match="SequentialScheme: `batch_size` must be (a whole|at least 1)"
    ):
        SequentialScheme(4, batch_size)


@pytest.mark.parametrize("examples", [-1, [0.5], ["a"], [[1, 2]]])
def test_examples_must_be_whole_numbers(examples):
    with pytest.raises(ValueError, match="SequentialExampleScheme: `examples` must be"):
        SequentialExampleScheme(examples)


class EveryOther(IterationScheme):
    """Written as for Fuel: no positions, and a generator that moves on."""

    requests_examples = True

    def __init__(self, rng):
        self.rng = rng

    def get_request_iterator(self):
        return iter([int(self.rng.integers(100)) + number for number in range(0, 6, 2)])


class Reversed(ShuffledExampleScheme):
    def get_request_iterator(self):
        return reversed(list(super().get_request_iterator()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: EveryOther(numpy.random.default_rng(3)),
        lambda: Reversed(6),
        lambda: ConcatenatedScheme([Reversed(4), ShuffledExampleScheme(3)]),
        # Each part draws before or after the one in which the position is.
        lambda: ConcatenatedScheme(
            [
                ShuffledExampleScheme(4, rng=numpy.random.RandomState(5)),
                EveryOther(numpy.random.default_rng(3)),
                ShuffledExampleScheme(3),
                ShuffledExampleScheme(4, rng=numpy.random.default_rng(6)),
            ]
        ),
    ],
)
def test_schemes_of_users_resume_at_every_request(make):
    scheme = make()
    epochs = [list(open_requests(scheme, epoch)) for epoch in range(3)]
    for index in range(len(epochs[1]) + 1):
        scheme = make()
        list(open_requests(scheme, 0))
        iterator = open_requests(scheme, 1)
        for _ in range(index):
            next(iterator)
        position = iterator.get_position()
        fresh = make()
        restored = open_requests(fresh, 1)
        restored.set_position(position)
        assert list(restored) == epochs[1][index:]
        assert list(open_requests(fresh, 2)) == epochs[2]


class Windows(PositionedScheme):
    """A new scheme with positions needs two attributes and a method."""

    requests_examples = False
    num_requests = 3

    def make_request(self, order, index):
        return [index, index + 1]


def test_a_scheme_with_positions_goes_to_any_of_them_at_once():
    iterator = open_requests(Windows(), 0)
    iterator.set_position(2)
    assert list(iterator) == [[2, 3]]


def test_a_repr_shows_the_arguments_and_how_many_examples_there_are():
    assert repr(SequentialScheme(10, 2)) == (
        "SequentialScheme(examples=10, batch_size=2, drop_last=False)"
    )
    assert repr(SequentialExampleScheme(3)) == "SequentialExampleScheme(examples=3)"
    assert "examples=<2 indices>, batch_size=2" in repr(ShuffledScheme([4, 7], 2))
