import pickle

import pytest

from fuel_data.utils import do_not_pickle_attributes


@do_not_pickle_attributes("content")
class Loaded:
    def __init__(self, text):
        self.text = text

    def load(self):
        self.content = self.text * 1000


@do_not_pickle_attributes("content")
class OwnState(Loaded):
    def __getstate__(self):
        return {"text": "own"}


@do_not_pickle_attributes("index")
class Indexed(Loaded):
    def load(self):
        super().load()
        self.index = {self.content: 1}


@do_not_pickle_attributes("index")
class IndexedWithOwnState(OwnState):
    def load(self):
        self.index = {}


@do_not_pickle_attributes("content")
class Forgetful:
    def load(self):
        pass


class Iterating(Loaded):
    def __init__(self):
        self.items = iter([1])


def test_the_attribute_is_loaded_when_first_read():
    assert Loaded("ab").content == "ab" * 1000


def test_the_attribute_stays_out_of_the_pickle_and_is_loaded_again():
    loaded = Loaded("ab")
    assert len(loaded.content) == 2000

    pickled = pickle.dumps(loaded)

    assert len(pickled) < 200
    assert pickle.loads(pickled).content == "ab" * 1000


def test_a_class_keeps_its_own_getstate():
    assert pickle.loads(pickle.dumps(OwnState("ab"))).text == "own"


def test_a_subclass_of_a_decorated_class_leaves_out_what_both_name():
    indexed = Indexed("ab")
    assert len(indexed.content) == len(*indexed.index) == 2000

    pickled = pickle.dumps(indexed)

    assert len(pickled) < 200
    assert pickle.loads(pickled).index == indexed.index
    # The base class still leaves out its own alone.
    assert Loaded.__getstate__(indexed).keys() == {"text", "_index"}
    assert pickle.loads(pickle.dumps(IndexedWithOwnState("ab"))).text == "own"


def test_a_class_without_load_is_refused():
    with pytest.raises(ValueError, match="object needs a method `load` that sets x"):
        do_not_pickle_attributes("x")(object)


def test_a_load_that_sets_nothing_is_an_error():
    with pytest.raises(ValueError, match=r"Forgetful.load\(\) did not set 'content'"):
        Forgetful().content  # noqa: B018 (reading it is the test)


def test_an_iterator_among_the_other_attributes_is_refused():
    with pytest.raises(ValueError, match="Iterating.items is an iterator"):
        pickle.dumps(Iterating())
