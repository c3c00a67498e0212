"""What stands over a served stream goes on at any item too, and can pass over items of it."""

import numpy
import pytest
from server_helpers import client_of, serving

from fuel_data.server import ServerError, connection
from fuel_data.streams import ServerDataStream
from fuel_data.testing import check_resumption
from fuel_data.testing.pipelines import LEAVES
from fuel_data.transformers import (
    Bucket,
    Interleave,
    Mix,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Transformer,
    Unpack,
)

BATCHES = next(case for case in LEAVES if case.name == "shuffled batches").build(11)


def _length(example):
    return int(example[1]) % 3


OVER = {
    "take": lambda stream: Take(stream, 3),
    "skip": lambda stream: Skip(stream, 1),
    "shard": lambda stream: Shard(stream, 1, 2),
    "repeat": lambda stream: Repeat(stream, 2),
    "shuffle": lambda stream: Shuffle(stream, 3),
    "mix": lambda stream: Mix([stream, stream], [2, 1]),
    "interleave": lambda stream: Interleave([stream, stream]),
    "bucket": lambda stream: Bucket(Unpack(stream), _length, [0, 2], 2),
}


@pytest.mark.parametrize("over", OVER.values(), ids=OVER)
def test_what_stands_over_a_served_stream_resumes_and_gives_what_it_gives_without(over):
    with serving(BATCHES) as server:

        def build(num_examples):
            return over(ServerDataStream(address=server.address))

        served = [[data.tolist() for data in item] for item in build(11).get_epoch_iterator()]
        check_resumption(build, by_pickle=False)

    alone = over(BATCHES).get_epoch_iterator(epoch=0)
    assert served == [[data.tolist() for data in item] for item in alone]


def test_a_served_stream_can_be_reported_on():
    with serving(BATCHES) as server, ServerDataStream(address=server.address) as stream:
        report = stream.report()

        assert (report.num_items, report.num_examples, report.is_whole) == (4, 11, True)
        assert report.sources["targets"].axis_labels == ("batch",)
        assert stream.epochs_begun == 0


class _Hoard(Transformer):
    """Hold back 1000 bytes all the time."""

    def start(self, stage):
        super().start(stage)
        stage.held["hoard"] = numpy.zeros(1000, "uint8")

    def read(self, stage, request):
        return next(stage.child)


def test_a_position_that_is_too_large_to_be_sent_is_an_error_in_words(monkeypatch):
    monkeypatch.setattr(connection, "MAX_CLIENT_FRAME", 999)
    with client_of(_Hoard(BATCHES)) as client:
        iterator = client.get_epoch_iterator()
        next(iterator)
        iterator.set_state(iterator.get_state())

        with pytest.raises(ServerError, match="has 1000 bytes in one piece, .* takes 999 at most"):
            next(iterator)
