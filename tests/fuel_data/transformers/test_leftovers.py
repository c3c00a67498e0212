import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.testing import check_contract, check_resumption
from fuel_data.transformers import LeftoverTransformer
from fuel_data.transformers.sequences import NGrams


class Halves(LeftoverTransformer):
    """Gives each batch in parts of at most two."""

    def read(self, stage, request):
        leftover = self.leftover(stage)
        part = slice(leftover.offset, leftover.offset + 2)
        leftover.offset = min(leftover.offset + 2, leftover.size)
        data = tuple(source[part] for source in leftover.batch)
        self.drop_if_empty(stage)
        return data


def _halves(num_examples):
    dataset = IndexableDataset(numpy.arange(num_examples))
    return Halves(DataStream(dataset, iteration_scheme=SequentialScheme(num_examples, 3)))


def test_a_leftover_is_saved_as_a_place_to_read_from():
    iterator = _halves(4).get_epoch_iterator()
    assert next(iterator)[0].tolist() == [0, 1]
    position = iterator.get_state()["position"]
    assert position == {"index": 1, "child": {"index": 0, "requests": 0}, "offset": 2}
    assert [x.tolist() for (x,) in iterator] == [[2], [3]]


def test_a_transformer_with_leftovers_keeps_the_contract():
    check_contract(_halves)


class Numbered(Halves):
    """Says of each part as the how manyth it is given."""

    def start(self, stage):
        super().start(stage)
        stage.held["given"] = 0

    def read(self, stage, request):
        (x,) = super().read(stage, request)
        stage.held["given"] += 1
        return (x + 100 * stage.held["given"],)


def test_a_transformer_with_leftovers_may_hold_plain_data_beside_them():
    def build(num_examples):
        return Numbered(_halves(num_examples).data_stream)

    assert [x.tolist() for (x,) in build(4)] == [[100, 101], [202], [303]]
    check_resumption(build)


def test_a_batch_that_is_no_longer_there_is_found_out():
    sentences = ["ab", "cde"]
    stream = NGrams(1, DataStream(IterableDataset({"x": lambda: iter(sentences)})))
    iterator = stream.get_epoch_iterator()
    for _ in range(2):
        next(iterator)
    state = iterator.get_state()
    del sentences[1:]

    with pytest.raises(ValueError, match="NGrams: the epoch ends before the batch of which a part"):
        iterator.set_state(state)
