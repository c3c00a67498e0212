import copy
import inspect
import pickle

import pytest

from fuel_data.utils.keywords import NamedKeywords


class Rate(NamedKeywords):
    def __init__(self, rate, /, learning_rate=1, *, decay=0):
        self.values = rate, learning_rate, decay


class Silent(NamedKeywords):
    """Has no ``__init__`` of its own."""


class Open(NamedKeywords):
    def __init__(self, first=1, **kwargs):
        self.values = first, kwargs


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"learning_rat": 2}, r"Rate: unexpected argument 'learning_rat'.*mean 'learning_rate'\?"),
        ({"decoy": 2, "learning_rate": 1}, r"'decoy'. Did you mean 'decay'\?"),
        ({"rate": 2}, r"'rate'"),
        ({"xyz": 2}, r"'xyz'. Known: decay, learning_rate\."),
    ],
)
def test_an_unknown_keyword_is_refused_and_the_nearest_is_named(keywords, message):
    with pytest.raises(TypeError, match=message):
        Rate(0, **keywords)


def test_known_keywords_are_taken():
    assert Rate(3, learning_rate=2, decay=1).values == (3, 2, 1)
    assert Rate(3, 2).values == (3, 2, 0)


def test_a_class_that_takes_nothing_says_so():
    with pytest.raises(TypeError, match="Silent: unexpected argument 'a'. None is known"):
        Silent(a=1)


def test_a_class_that_takes_any_keyword_decides_itself():
    assert Open(second=2).values == (1, {"second": 2})


ROUND_TRIPS = [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]


@pytest.mark.parametrize("again", ROUND_TRIPS)
def test_instances_are_copied_and_pickled(again):
    assert again(Rate(3)).values == (3, 1, 0)


def test_the_signature_of_a_class_is_that_of_its_init():
    assert list(inspect.signature(Rate).parameters) == ["rate", "learning_rate", "decay"]
