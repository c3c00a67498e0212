import functools
import itertools
from random import shuffle

import numpy
import pytest

from fuel_data.randomness import (
    _stable_order,
    generator,
    key,
    permutation,
    rng_state,
    rngs_of,
    set_rng_state,
)
from fuel_data.state import join_arrays, split_arrays
from fuel_data.transformers import SortMapping


def test_no_two_occasions_have_one_key():
    numbers = (0, 1, 2, 11, 12, 21)
    places = ("", "/0", "/1", ".0/1", "scheme", "1")
    keys = {key(*four) for four in itertools.product(numbers, places, numbers, (None, *numbers))}
    assert len(keys) == 6 * 6 * 6 * 7


def test_keys_and_draws_are_pinned():
    assert hex(key(1, "/1", 0, 0)) == "0xef8a7bfb1db3b44213a7f4660eb232dd"
    assert generator(key(1, "/1", 0, 0)).integers(1000, size=4).tolist() == [24, 318, 70, 457]


def test_permutations_are_pinned():
    assert permutation(key(1, "scheme", 0), 10).tolist() == [4, 5, 2, 8, 3, 0, 9, 7, 1, 6]


def test_a_permutation_has_every_number_once_as_int64():
    shuffled = permutation(key(3, "", 0), 1000)
    assert shuffled.dtype == numpy.int64
    assert sorted(shuffled.tolist()) == list(range(1000))
    assert permutation(3, 0).tolist() == []


def test_draws_that_are_equal_keep_their_order():
    draws = numpy.random.default_rng(1).integers(0, 50, 2000, dtype="uint64")
    expected = sorted(range(2000), key=lambda place: int(draws[place]))
    assert _stable_order(draws).tolist() == expected


@pytest.mark.parametrize(
    "make",
    [
        numpy.random.RandomState,
        numpy.random.default_rng,
        lambda seed: numpy.random.Generator(numpy.random.Philox(seed)),
        lambda seed: numpy.random.Generator(numpy.random.MT19937(seed)),
    ],
)
def test_a_generator_goes_on_from_its_state_as_plain_data(make):
    rng = make(4)
    rng.normal(size=3)
    state = join_arrays(*split_arrays(rng_state(rng)))
    expected = rng.normal(size=5)
    other = make(0)
    set_rng_state(other, state)
    numpy.testing.assert_array_equal(other.normal(size=5), expected)


def test_a_state_does_not_change_with_its_generator():
    rng = numpy.random.RandomState(1)
    state = rng_state(rng)
    rng.normal(size=1000)
    set_rng_state(rng, state)
    assert rng.uniform() == numpy.random.RandomState(1).uniform()


def test_the_state_of_another_kind_of_generator_is_refused():
    state = rng_state(numpy.random.default_rng(1))
    with pytest.raises(ValueError, match="saved state is of PCG64, the generator is MT19937"):
        set_rng_state(numpy.random.RandomState(1), state)


GLOBAL_RNG = numpy.random.default_rng(0)


class Holder:
    def __init__(self):
        self.rng = GLOBAL_RNG

    def method(self):
        return self.rng.uniform()

    def __call__(self):
        return self.rng.uniform()


def _uses_global():
    return GLOBAL_RNG.uniform()


def _takes(x, rng=GLOBAL_RNG):
    return rng.uniform()


def _closing_over(rng):
    return lambda: rng.uniform()


def _takes_keyword(*, rng=GLOBAL_RNG):
    return rng.uniform()


def _by_helper():
    return _uses_global()


class Calls:
    def __call__(self):
        return GLOBAL_RNG.uniform()


class OfClass:
    rng = GLOBAL_RNG

    def __call__(self):
        return self.rng.uniform()


class Slotted:
    __slots__ = ("rng",)

    def __init__(self):
        self.rng = GLOBAL_RNG


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (Holder(), "rng"),
        (Holder().method, "rng"),
        (Slotted(), "rng"),
        (OfClass(), "class OfClass.rng"),
        (_uses_global, "global GLOBAL_RNG"),
        (lambda: [GLOBAL_RNG.uniform() for _ in range(2)], "global GLOBAL_RNG"),
        (lambda: sorted([1, 2], key=lambda _: GLOBAL_RNG.uniform()), "global GLOBAL_RNG"),
        (_by_helper, "global _uses_global.global GLOBAL_RNG"),
        (Calls(), "class Calls.__call__.global GLOBAL_RNG"),
        (_takes, "default 0"),
        (_takes_keyword, "default rng"),
        (_closing_over(GLOBAL_RNG), "variable rng"),
        (_closing_over([Holder()]), "variable rng.[0].rng"),
        (_closing_over({"a": (GLOBAL_RNG,)}), "variable rng.['a'].[0]"),
        (functools.partial(_takes, rng=GLOBAL_RNG), "rng"),
        (functools.partial(_uses_global), "function.global GLOBAL_RNG"),
        (SortMapping(key=lambda _: GLOBAL_RNG.uniform()), "key.global GLOBAL_RNG"),
    ],
)
def test_the_generators_of_a_function_are_found(function, name):
    assert rngs_of(function)[name] is GLOBAL_RNG


rng = numpy.random.default_rng(1)


def test_a_global_does_not_take_the_place_of_an_attribute_of_its_name():
    assert rng not in rngs_of(Holder().method).values()


def test_objects_that_hold_each_other_and_long_lists_are_looked_through_once_or_not():
    holder = Holder()
    holder.others = [holder, [GLOBAL_RNG] * 2000]
    assert rngs_of(holder) == {"rng": GLOBAL_RNG}


def test_what_libraries_draw_from_is_not_found():
    assert rngs_of(numpy.random.uniform) == rngs_of(lambda: shuffle([1])) == {}


def test_a_function_that_draws_from_nothing_has_no_generators():
    assert rngs_of(len) == {}
    assert rngs_of(lambda: None) == {}
