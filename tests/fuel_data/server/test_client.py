import contextlib
import os
import pickle
import re
import signal
import threading

import numpy
import pytest
import server_recipes as recipes
from numpy.testing import assert_equal
from server_helpers import RECIPES, client_of, epochs, processes_naming, serving, wait_until

from fuel_data.datasets import IndexableDataset
from fuel_data.server import PipelineError, ServerError, serve
from fuel_data.server.errors import ConnectionLost, RecipeError
from fuel_data.server.process import ServerProcess
from fuel_data.server.recipe import Recipe
from fuel_data.streams import ServerDataStream
from fuel_data.testing.checks import check_resumption, same_data
from fuel_data.testing.pipelines import STREAMS
from fuel_data.transformers import Mapping

# The contract of all streams


@pytest.mark.parametrize("case", STREAMS, ids=[case.name for case in STREAMS])
def test_a_served_stream_gives_what_the_stream_gives(case):
    with client_of(case.build(11)) as client:
        assert same_data(epochs(client), epochs(case.build(11)))


@pytest.mark.parametrize("case", STREAMS, ids=[case.name for case in STREAMS])
def test_a_served_stream_resumes_at_every_step(case):
    with contextlib.ExitStack() as stack:
        clients = []

        def build(num_examples):
            # A generator of the user's is one for all iterators of a stream.
            if not clients or case.shares_rng:
                clients.append(stack.enter_context(client_of(case.build(num_examples))))
            return pickle.loads(pickle.dumps(clients[-1]))

        check_resumption(build, by_pickle=not case.shares_rng)


def test_a_served_stream_says_what_the_stream_says():
    stream = recipes.counted()
    stream.metadata = {"x": {"unit": "volt"}}
    stream.axis_labels = {**stream.axis_labels, "z": ("batch",)}
    with client_of(stream) as client:
        assert client.sources == ("x", "y")
        assert client.axis_labels == {"x": ("batch", "feature"), "y": ("batch",)}
        assert client.produces_examples is False
        assert client.metadata == {"x": {"unit": "volt"}}
        assert client.num_batches == len(client) == 5
        assert client.num_examples == 10
        assert client.digest() == stream.digest()


def test_positions_of_served_and_own_iterators_are_the_same_plain_data():
    own = recipes.random().get_epoch_iterator(epoch=2)
    with client_of(recipes.random()) as client:
        served = client.get_epoch_iterator(epoch=2)
        for _ in range(3):
            assert served.get_state() == own.get_state()
            next(served), next(own)
        own.set_state(served.get_state())
        assert_equal(next(own), next(served))


def test_epochs_are_counted_and_can_be_chosen():
    reference = epochs(recipes.counted(), 4)
    with client_of(recipes.counted()) as client:
        assert same_data(list(client.get_epoch_iterator(epoch=2)), reference[2])
        assert same_data(list(client.get_epoch_iterator()), reference[3])


def test_two_iterators_do_not_disturb_each_other():
    reference = epochs(recipes.counted())
    with client_of(recipes.counted()) as client:
        one, two = client.get_epoch_iterator(), client.get_epoch_iterator()
        pairs = list(zip(one, two, strict=True))

    assert same_data([pair[0] for pair in pairs], reference[0])
    assert same_data([pair[1] for pair in pairs], reference[1])


def test_an_epoch_that_was_left_does_not_leak_into_the_next():
    reference = epochs(recipes.counted())
    with client_of(recipes.counted()) as client:
        next(client.get_epoch_iterator())

        assert same_data(list(client.get_epoch_iterator()), reference[1])


def test_an_iterator_gives_dicts_when_asked():
    with client_of(recipes.in_order()) as client:
        assert_equal(next(client.get_epoch_iterator(as_dict=True)), {"x": [0, 1]})


def test_arrays_can_be_written_to():
    with client_of(recipes.in_order()) as client:
        (array,) = next(client.get_epoch_iterator())
        array += 1

    assert array.tolist() == [1, 2]


def test_transformers_go_over_a_served_stream_and_resume():
    def add(batch, rng):
        return (batch[0] + rng.integers(100), *batch[1:])

    with client_of(recipes.counted()) as client:
        check_resumption(lambda _: Mapping(client, add, random=True, seed=1), by_pickle=False)


def test_reading_ahead_goes_as_far_as_the_credits_and_further_when_batches_are_taken():
    seen = []

    def note(batch):
        seen.append(int(batch[0][0]))
        return batch

    with client_of(Mapping(recipes.in_order(40, 1), note), hwm=4) as client:
        iterator = client.get_epoch_iterator()
        wait_until(lambda: len(seen) == 4)
        next(iterator), next(iterator)
        wait_until(lambda: len(seen) == 6)
        iterator.close()


def test_get_data_is_refused_with_the_way_out():
    stream = serve(f"{RECIPES}:in_order")

    with pytest.raises(ValueError, match=r"read next\(stream.get_epoch_iterator\(\)\) instead"):
        stream.get_data()


# Fuel's arguments


def test_fuels_arguments_are_taken_and_checked():
    # As a data set has them that provides more sources than it was asked for.
    labels = {"x": ("batch", "feature"), "y": ("batch",), "z": ("batch",)}
    with serving(recipes.counted(), address="tcp://127.0.0.1:0") as server:
        port = int(server.address.rpartition(":")[2])
        client = ServerDataStream(["x", "y"], False, "localhost", port, 10, labels)
        with client:
            assert client.sources == ("x", "y")  # known before the server is asked
            assert same_data(epochs(client), epochs(recipes.counted()))


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"sources": ("x",)}, r"`sources` must be \('x',\) .*, but the server's is \('x', 'y'\)"),
        ({"produces_examples": True}, "`produces_examples` must be True .* server's is False"),
        ({"axis_labels": {"x": None}}, "`axis_labels` must be .*It serves DataStream"),
    ],
)
def test_a_server_that_gives_something_else_is_an_error(expected, words):
    with (
        client_of(recipes.counted(), **expected) as client,
        pytest.raises(ServerError, match=words),
    ):
        client.get_epoch_iterator()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recipe": "a:b", "port": 1}, "give a `recipe` or an address, not both"),
        ({"arguments": {}}, "`arguments` are those of a `recipe`"),
        ({"hwm": 0}, "`hwm` must be at least 1; got 0"),
        ({"hwm": 2.5}, "`hwm` must be a whole number; got 2.5"),
        ({"timeout": None}, "`timeout` must be a number of seconds from 0 to inf; got None"),
        ({"timeout": float("nan")}, "`timeout` must be a number of seconds from 0 to inf; got nan"),
        ({"heartbeat": 0}, "`heartbeat` must be a number of seconds from 0.001 to 1e.06; got 0"),
        ({"heartbeat": 1e7}, "`heartbeat` must be a number of seconds .*; got 10000000.0"),
        ({"heartbeat": "2"}, "`heartbeat` must be a number of seconds .*; got '2'"),
        ({"address": 5}, "address: expected text, 'ipc://PATH' .*, got 5"),
        ({"address": "ipc://a\0b"}, r"address: expected text, .*, got 'ipc://a\\x00b'"),
        ({"token": b"secret"}, "token: expected text, got bytes"),
        ({"port": 1, "address": "ipc://a"}, "give `port` or `address`, not both"),
        (
            {"host": "example.org", "port": 5},
            "'tcp://example.org:5' is not on this .*tcp://127.0.0.1:5 .*ssh -L 5:127.0.0.1:5 HOST",
        ),
        (
            {"host": "10.0.0.1"},
            "'tcp://10.0.0.1:PORT' is not on this .*1:PORT .*ssh -L PORT:127.0.0.1:PORT HOST",
        ),
        ({"port": 99999999}, "the port of 'tcp://localhost:99999999' must be at most 65535"),
        ({"port": 0}, "no server can be reached at the port 0 of 'tcp://localhost:0'"),
        ({"port": "http"}, "expected .*'tcp://127.0.0.1:PORT', got 'tcp://localhost:http'"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        ServerDataStream(**options)


# Losses and errors


def test_an_interrupt_between_two_batches_loses_none(monkeypatch):
    with client_of(recipes.counted()) as client:
        iterator = client.get_epoch_iterator()
        items = [next(iterator)]
        progressed = client._progressed

        def interrupt():
            raise KeyboardInterrupt

        monkeypatch.setattr(client, "_progressed", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
        monkeypatch.setattr(client, "_progressed", progressed)
        items += list(iterator)

    assert same_data(items, list(recipes.counted().get_epoch_iterator()))


def test_a_message_that_is_lost_on_this_side_is_asked_for_again():
    with client_of(recipes.counted()) as client:
        iterator = client.get_epoch_iterator()
        items = [next(iterator)]
        iterator._stage._connection.receive("batch")
        items += list(iterator)

    assert same_data(items, list(recipes.counted().get_epoch_iterator()))


@pytest.mark.parametrize(
    ("recipe", "words"),
    [("failing", "ZeroDivisionError: the sixth is bad"), ("leaving", "SystemExit: leaving")],
)
def test_an_error_in_the_pipeline_comes_at_its_batch_with_its_traceback(recipe, words):
    with client_of(getattr(recipes, recipe)()) as client:
        iterator = client.get_epoch_iterator()
        items = [next(iterator)[0].tolist() for _ in range(3)]
        with pytest.raises(PipelineError, match=words) as first:
            next(iterator)
        with pytest.raises(PipelineError, match=words):
            next(iterator)

    assert items == [[0, 1], [2, 3], [4, 5]]
    assert "server_recipes.py" in str(first.value)
    assert iterator.index == 3


def test_a_recipe_that_fails_is_an_error_with_the_servers_words():
    with (
        serve(f"{RECIPES}:countd") as client,
        pytest.raises(
            ServerError,
            match="(?s)no server could be started for recipe='.*:countd', arguments={}"
            ".*last lines:.*no function 'countd'. Did you mean 'counted'",
        ),
    ):
        next(client.get_epoch_iterator())


def test_the_error_that_ends_a_server_is_said_once_and_what_it_printed_before_is_seen(capfd):
    with (
        serve(f"{RECIPES}:printing_and_failing", num_lines=60) as client,
        pytest.raises(ServerError) as raised,
    ):
        list(client.get_epoch_iterator())

    printed = capfd.readouterr().err
    assert printed.splitlines() == [f"line {number}" for number in range(60)]
    words = str(raised.value)
    assert "    line 59\n    fuel-server: the code of a recipe failed:\n" in words
    # Longer than what is kept of the prints, and whole.
    assert all(f"cause {number}\n" in words for number in range(60))


def test_the_error_of_a_server_that_nobody_asks_is_printed(capfd):
    process = ServerProcess(Recipe(f"{RECIPES}:needs", {"path": "gone"}), 1.0)
    wait_until(lambda: process.exit_status() is not None)
    process.close()

    assert capfd.readouterr().err.endswith("KeyError: 'gone'\n")


def test_a_recipe_that_raises_is_an_error_with_its_traceback():
    with (
        serve(f"{RECIPES}:needs", path="gone") as client,
        pytest.raises(
            ServerError, match="(?s)the code of a recipe failed:.*raise KeyError.*KeyError: 'gone'"
        ),
    ):
        next(client.get_epoch_iterator())


def test_a_missing_file_is_an_error_when_the_stream_is_made():
    with pytest.raises(RecipeError, match="there is no file"):
        serve("missing.py:build")


# A server of one's own


def server_pid(stream):
    return stream._access.process.pid


def test_a_server_of_its_own_is_started_when_it_is_needed_and_ended_by_close(folder):
    stream = serve(f"{RECIPES}:counted", batch_size=5)
    assert processes_naming(str(folder)) == []

    result = epochs(stream)

    assert processes_naming(str(folder)) == [server_pid(stream)]
    stream.close()
    assert processes_naming(str(folder)) == []
    assert same_data(result, epochs(recipes.counted(batch_size=5)))


def test_a_server_of_its_own_asks_for_no_token_whatever_the_environment_has(monkeypatch):
    monkeypatch.setenv("FUEL_SERVER_TOKEN", "of another server")

    with serve(f"{RECIPES}:counted", batch_size=5) as stream:
        assert same_data(epochs(stream), epochs(recipes.counted(batch_size=5)))


def test_the_recipe_of_a_server_of_its_own_finds_the_token_in_the_environment(monkeypatch):
    monkeypatch.setenv("FUEL_SERVER_TOKEN", "of the first server")
    with (
        serving(recipes.in_order()) as server,
        serve(f"{RECIPES}:of_another_server", address=server.address) as stream,
    ):
        assert same_data(epochs(stream), epochs(recipes.in_order()))


def test_reading_after_close_starts_it_again_and_goes_on():
    with serve(f"{RECIPES}:random") as stream:
        iterator = stream.get_epoch_iterator()
        items = [next(iterator)]
        stream.close()
        items += list(iterator)

    assert same_data(items, list(recipes.random().get_epoch_iterator()))


def test_a_stream_that_is_forgotten_ends_its_server(folder):
    stream = serve(f"{RECIPES}:counted")
    iterator = stream.get_epoch_iterator()
    next(iterator)

    del stream, iterator

    wait_until(lambda: not processes_naming(str(folder)))


def test_the_server_has_a_session_of_its_own():
    with serve(f"{RECIPES}:counted") as stream:
        next(stream.get_epoch_iterator())

        assert os.getsid(server_pid(stream)) == server_pid(stream)


def test_the_server_imports_neither_compiler_nor_tests():
    with serve(f"{RECIPES}:modules") as stream:
        names = {str(name) for (name,) in stream.get_epoch_iterator()}

    assert {"numpy", "zmq", "fuel_data"} <= names
    assert not names & {"aesara", "jax", "jaxlib", "bricks", "extensions", "scipy", "pytest"}


def test_a_server_that_was_killed_is_replaced_without_a_word():
    with ServerDataStream(recipe=f"{RECIPES}:random", hwm=1) as stream:
        iterator = stream.get_epoch_iterator()
        items = []
        for index, item in enumerate(iterator):
            items.append(item)
            if index % 6 == 0:
                os.kill(server_pid(stream), signal.SIGKILL)

    assert same_data(items, list(recipes.random().get_epoch_iterator()))


def test_a_server_that_was_killed_at_the_end_of_an_epoch_is_replaced():
    with serve(f"{RECIPES}:with_generator") as stream:
        items = []
        for _ in range(3):
            items.append(list(stream.get_epoch_iterator()))
            os.kill(server_pid(stream), signal.SIGKILL)

    assert same_data(items, epochs(recipes.with_generator(), 3))


def test_a_server_that_hangs_is_replaced():
    stream = ServerDataStream(recipe=f"{RECIPES}:random", heartbeat=0.2, hwm=1)
    with stream:
        iterator = stream.get_epoch_iterator()
        items = [next(iterator)]
        os.kill(server_pid(stream), signal.SIGSTOP)
        items += list(iterator)

    assert same_data(items, list(recipes.random().get_epoch_iterator()))


def test_a_server_that_hangs_before_it_listens_is_replaced():
    with serve(f"{RECIPES}:random") as stream:
        access = stream._access
        access.start_timeout = 0.0
        first = access.process = ServerProcess(access.recipe, access.heartbeat)
        os.kill(first.pid, signal.SIGSTOP)
        with pytest.raises(ConnectionLost, match="does not begin to listen"):
            access.connect()
        access.start_timeout = 60.0
        access.lost(None)
        items = list(stream.get_epoch_iterator())

        assert first.exit_status() == -signal.SIGKILL
    assert same_data(items, list(recipes.random().get_epoch_iterator()))


def test_a_server_that_dies_again_and_again_is_an_error_with_its_last_lines():
    with serve(f"{RECIPES}:dying") as stream:
        iterator = stream.get_epoch_iterator()
        items = [next(iterator)[0].tolist() for _ in range(3)]
        with pytest.raises(
            ServerError, match="(?s)died 4 times and gave no batch.*last lines:\n    about to die"
        ):
            next(iterator)

    assert items == [[0, 1], [2, 3], [4, 5]]


def test_what_takes_long_to_build_its_stream_is_waited_for_aloud(folder, caplog):
    with serve(f"{RECIPES}:slow", go_on=f"{folder}/go-on") as stream:
        stream._access.patience = 0.1
        results = []
        reader = threading.Thread(target=lambda: results.append(stream.sources))
        reader.start()
        wait_until(lambda: len(caplog.messages) >= 2)
        (folder / "go-on").touch()
        reader.join(10)

    assert results == [("x",)]
    assert re.match(
        r"ServerDataStream: waiting for \d+ seconds for recipe='.*:slow', .* to build its stream",
        caplog.messages[0],
    )


def test_what_is_prepared_ahead_takes_no_batch_before_it_along():
    with serve(f"{RECIPES}:dying_at_once") as stream:
        iterator = stream.get_epoch_iterator()
        first = next(iterator)
        with pytest.raises(ServerError, match="died 4 times and gave no batch in between"):
            next(iterator)

    assert_equal(first, ([0, 1],))


def test_after_a_loss_few_batches_are_prepared_ahead_and_then_as_many_as_before():
    seen = []

    def note(batch):
        seen.append(int(batch[0][0]))
        return batch

    with client_of(Mapping(recipes.in_order(40, 1), note), hwm=4) as client:
        client._lost(None)
        iterator = client.get_epoch_iterator()
        ahead = []
        for index in range(4):
            wait_until(lambda limit=index + 1 + index: len(seen) >= limit)
            ahead.append(len(seen) - index)
            next(iterator)
        items = list(iterator)

    assert ahead == [1, 2, 3, 4]
    assert len(items) == 36


def test_close_ends_a_server_that_hangs_in_a_batch(folder):
    stream = ServerDataStream(recipe=f"{RECIPES}:hanging", heartbeat=0.2)
    iterator = stream.get_epoch_iterator()
    [next(iterator) for _ in range(3)]

    stream.close()

    assert processes_naming(str(folder)) == []


def test_an_unpickled_iterator_starts_a_server_and_goes_on():
    reference = epochs(recipes.random(), 2)
    with serve(f"{RECIPES}:random") as stream:
        iterator = stream.get_epoch_iterator(as_dict=True)
        next(iterator), next(iterator)
        saved = pickle.dumps(iterator)
    again = pickle.loads(saved)
    with again.data_stream:
        assert again.data_stream._access.process is None
        rest = [tuple(item.values()) for item in again]
        following = list(again.data_stream.get_epoch_iterator())

    assert same_data(rest, reference[0][2:])
    assert same_data(following, reference[1])
    assert len(saved) < 2500


def test_an_unpickled_iterator_notices_that_its_recipe_has_changed(tmp_path):
    path = tmp_path / "changing_recipes.py"
    path.write_text(
        f"import sys\nsys.path.append({os.path.dirname(RECIPES)!r})\n"
        "from server_recipes import counted\ndef build():\n    return counted(seed=1)\n"
    )
    stream = serve(f"{path}:build")
    with stream:
        iterator = stream.get_epoch_iterator()
        next(iterator)
        saved = pickle.dumps(iterator)
    path.write_text(path.read_text().replace("seed=1", "seed=2"))
    again = pickle.loads(saved)

    with again.data_stream, pytest.raises(ServerError, match="now serves another pipeline"):
        next(again)


def test_what_the_server_prints_is_seen(capfd):
    with serve(f"{RECIPES}:dying") as stream, pytest.raises(ServerError):
        list(stream.get_epoch_iterator())

    assert capfd.readouterr().err.count("about to die") >= 4


def test_the_stream_names_its_server():
    assert (
        repr(serve("pipelines:build", batch_size=3))
        == "ServerDataStream(recipe='pipelines:build', arguments={'batch_size': 3})"
    )
    assert repr(ServerDataStream(address="tcp://localhost:9", token="secret")) == (
        "ServerDataStream(address='tcp://127.0.0.1:9')"
    )


def test_large_batches_come_as_they_are():
    rng = numpy.random.default_rng(1)
    data = rng.integers(0, 255, size=(4, 3_000_000), dtype="uint8")
    stream = IndexableDataset({"x": data}).get_example_stream()
    with client_of(stream) as client:
        items = [item for (item,) in client.get_epoch_iterator()]

    assert (numpy.stack(items) == data).all()


def test_a_server_that_prepares_less_than_the_client_would_take_gives_all_batches():
    with (
        serving(recipes.in_order(), hwm=2) as server,
        ServerDataStream(address=server.address, hwm=10) as client,
    ):
        assert same_data(epochs(client), epochs(recipes.in_order()))


def test_a_server_that_cannot_be_started_leaves_no_folder(folder, monkeypatch):
    monkeypatch.setattr("sys.executable", "/missing/python")

    with pytest.raises(FileNotFoundError, match="/missing/python"):
        next(serve(f"{RECIPES}:counted").get_epoch_iterator())

    assert list(folder.glob("fuel-*")) == []


def test_a_client_that_is_closed_leaves_nothing_open():
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    with serving(recipes.counted()) as server:
        with ServerDataStream(address=server.address) as client:
            epochs(client)
        before = descriptors()
        for _ in range(3):
            with ServerDataStream(address=server.address) as client:
                left = client.get_epoch_iterator()
                next(left)
                left.close()
                list(client.get_epoch_iterator())
        # The server's end of a connection goes a moment later.
        wait_until(lambda: descriptors() <= before)


@pytest.mark.parametrize("ask", ["reset", "next_epoch", "close"])
def test_between_epochs_it_does_not_matter_what_the_stream_is_asked_for(ask):
    own, reference = recipes.counted(), epochs(recipes.counted())
    with client_of(recipes.counted()) as client:
        for stream in (client, own):
            iterator = stream.get_epoch_iterator()
            first = [next(iterator), next(iterator)]
            getattr(stream, ask)()

            assert same_data(list(stream.get_epoch_iterator()), reference[1])
            assert same_data(first + list(iterator), reference[0])
