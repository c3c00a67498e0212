import numpy

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.testing import check_contract
from fuel_data.transformers import LeftoverTransformer


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
