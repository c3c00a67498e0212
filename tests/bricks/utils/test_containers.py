"""The list that notices what enters and leaves it."""

import pickle

from bricks.utils.containers import AnnotatingList


class Noticing(AnnotatingList):
    def __init__(self, items=None):
        self.seen = []
        super().__init__(items)

    def _setitem(self, value):
        self.seen.append(("in", value))

    def _delitem(self, value):
        self.seen.append(("out", value))


def test_every_way_in_and_out_is_noticed():
    items = Noticing([1, 2, 3])
    items[0] = 4
    items.insert(0, 5)
    del items[-1]
    items[1:] = [6]
    items.extend([7])
    assert items.pop() == 7

    assert items == [5, 6]
    assert items.seen == [
        *[("in", 1), ("in", 2), ("in", 3), ("out", 1), ("in", 4), ("in", 5), ("out", 3)],
        *[("out", 4), ("out", 2), ("in", 6), ("in", 7), ("out", 7)],
    ]


def test_it_adds_and_compares_like_a_list_and_pickles():
    items = Noticing([1, 2])

    assert items + [3] == [1, 2, 3]
    assert [0] + items == [0, 1, 2]
    assert items == AnnotatingList([1, 2])
    assert items != [1]
    assert repr(items) == "[1, 2]"
    assert pickle.loads(pickle.dumps(items)) == items
