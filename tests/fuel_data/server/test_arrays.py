import numpy
import pytest
import zmq

from fuel_data.server import WireError, recv_arrays, send_arrays


@pytest.fixture
def sockets():
    with (
        zmq.Context() as context,
        context.socket(zmq.PUSH) as ours,
        context.socket(zmq.PULL) as theirs,
    ):
        ours.bind("inproc://arrays")
        theirs.connect("inproc://arrays")
        yield ours, theirs


def test_arrays_of_every_kind_arrive_as_they_were(sockets):
    ours, theirs = sockets
    ragged = numpy.empty(2, dtype=object)
    ragged[:] = [numpy.arange(3), numpy.arange(2)]
    sent = [
        numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
        numpy.array(7),
        numpy.zeros(2, dtype=[("a", "i4"), ("b", "f8", 2)]),
        numpy.zeros((0, 3), dtype="uint8"),
    ]

    send_arrays(ours, [*sent, ragged])
    *received, objects = recv_arrays(theirs)

    for before, after in zip(sent, received, strict=True):
        numpy.testing.assert_array_equal(after, before)
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        assert after.flags.writeable
    assert [item.tolist() for item in objects] == [[0, 1, 2], [0, 1]]


def test_no_arrays_are_a_message_and_the_end_is_told(sockets):
    ours, theirs = sockets
    send_arrays(ours, [])
    send_arrays(ours, None, stop=True)

    assert recv_arrays(theirs) == []
    with pytest.raises(StopIteration):
        recv_arrays(theirs)


def test_what_cannot_be_sent_or_was_not_sent_so_is_refused(sockets):
    ours, theirs = sockets
    with pytest.raises(WireError, match="cannot send"):
        send_arrays(ours, [numpy.array([object()])])
    ours.send(b"garbage")
    with pytest.raises(WireError, match="does not follow the format"):
        recv_arrays(theirs)
