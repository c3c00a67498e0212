import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy
import pytest

from fuel_data.datasets import IndexableDataset
from fuel_data.schemes import SequentialScheme, ShuffledScheme
from fuel_data.server import PipelineError, RecipeError
from fuel_data.streams import DataStream
from fuel_data.testing import STREAMS, check_contract, same_data
from fuel_data.transformers import Mapping, Merge, MultiProcessing, Rename

sys.path.append(str(Path(__file__).with_name("support")))

from process_helpers import OwnIterators, draw, fails_at_six, with_process

ROOT = Path(__file__).parents[3]
CASES = {case.name: case for case in STREAMS}


def batches(num_examples=10, scheme=SequentialScheme):
    data = {"x": numpy.arange(2.0 * num_examples).reshape(-1, 2), "y": numpy.arange(num_examples)}
    labels = {"x": ("batch", "feature"), "y": ("batch",)}
    dataset = IndexableDataset(data, axis_labels=labels)
    return DataStream(dataset, iteration_scheme=scheme(num_examples, 2))


def jitter(batch, rng):
    return (batch[0] + rng.normal(size=batch[0].shape), *batch[1:])


def children():
    """Give the ids of the living processes that this one has started."""
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        found += map(int, path.read_text().split())
    return set(found)


@pytest.fixture(autouse=True)
def no_process_remains():
    before, threads = children(), threading.active_count()
    yield
    gc.collect()
    assert children() == before
    assert threading.active_count() <= threads


@pytest.mark.parametrize(
    "name", ["shuffled batches", "images, examples", "ragged examples, bucketed by tokens, padded"]
)
def test_a_stream_in_the_background_keeps_the_contract(name):
    streams = {}

    def build(num_examples):
        stream = MultiProcessing(CASES[name].build(num_examples), max_store=3)
        # Positions go from one stream to another; the process may be the same.
        first = streams.setdefault(num_examples, stream)
        stream._process = first._process
        return stream

    check_contract(build, by_pickle=False)
    for stream in streams.values():
        stream.close()


def test_a_pickled_iterator_goes_on_in_another_process_from_where_it_was():
    with MultiProcessing(batches(scheme=ShuffledScheme)) as stream:
        expected = [
            list(batches(scheme=ShuffledScheme).get_epoch_iterator(epoch=n)) for n in (0, 1)
        ]
        iterator = stream.get_epoch_iterator()
        given = [next(iterator), next(iterator)]
        saved = pickle.dumps(iterator)
    restored = pickle.loads(saved)
    with restored.data_stream as stream:
        assert same_data([given + list(restored), list(stream)], expected)


def test_what_is_drawn_over_iterators_of_a_streams_own_and_here_differs():
    below = Mapping(OwnIterators(), draw, random=True, seed=1)
    with MultiProcessing(below) as stream:
        here = Mapping(stream, draw, random=True, seed=1)
        drawn = [[n for (n,) in each.get_epoch_iterator(epoch=0)] for each in (below, stream, here)]

    assert drawn[0] == drawn[1]
    assert len({*drawn[0], *drawn[2]}) == 4


def test_nothing_is_started_before_an_epoch_and_close_ends_the_process():
    before = children()
    stream = MultiProcessing(Mapping(batches(), with_process))
    assert MultiProcessing(batches()).num_examples == 10
    assert (stream.sources, len(stream), stream.num_examples) == (("x", "y"), 5, None)
    assert stream.axis_labels == {"x": ("batch", "feature"), "y": ("batch",)}
    assert children() == before

    x, _ = next(stream.get_epoch_iterator())

    assert children() - before == {int(x[0, 0])}
    stream.close()
    assert children() == before


def test_an_epoch_that_is_left_leaks_nothing_and_reads_no_further_than_allowed():
    with MultiProcessing(batches(), max_store=2) as stream:
        next(stream.get_epoch_iterator())
        assert [y.tolist() for _, y in stream] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


def test_a_process_that_is_killed_is_replaced_and_nothing_is_lost_or_twice():
    with MultiProcessing(Mapping(batches(), with_process)) as stream:
        read, processes = [], set()
        for x, y in stream.get_epoch_iterator():
            read += y.tolist()
            processes.add(int(x[0, 0]))
            if len(read) == 4:
                os.kill(int(x[0, 0]), signal.SIGKILL)

    assert read == list(range(10))
    assert len(processes) in (1, 2)  # one, if all was read ahead


def test_an_error_comes_where_its_batch_would_have_with_its_traceback():
    with MultiProcessing(Mapping(batches(), fails_at_six)) as stream:
        iterator = stream.get_epoch_iterator()
        assert [next(iterator)[1].tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
        with pytest.raises(PipelineError, match=r"^MultiProcessing: .*KeyError: 'six'") as caught:
            next(iterator)
    assert "in fails_at_six" in str(caught.value)


def test_branches_of_a_pipeline_draw_as_they_do_without_processes():
    def merged(over):
        left, right = (over(Mapping(batches(4), jitter, random=True)) for _ in range(2))
        return Merge([left, Rename(right, {"x": "u", "y": "v"})])

    expected = list(merged(lambda stream: stream))
    with merged(MultiProcessing) as stream:
        assert same_data(list(stream), expected)
    assert not numpy.array_equal(expected[0][0], expected[0][2])


def test_how_much_is_read_ahead_is_no_part_of_the_pipeline():
    digests = {MultiProcessing(batches(), n).digest() for n in (1, 50)}

    assert len(digests) == 1
    assert MultiProcessing(batches(12)).digest() not in digests
    with pytest.raises(ValueError, match="MultiProcessing: `max_store` must be at least 1; got 0"):
        MultiProcessing(batches(), 0)


def test_a_generator_with_a_memory_is_refused():
    dataset = IndexableDataset({"x": range(4)})
    scheme = ShuffledScheme(4, 2, rng=numpy.random.RandomState(1))

    with pytest.raises(ValueError, match="would move on in the other process .* Give `seed=`"):
        MultiProcessing(DataStream(dataset, iteration_scheme=scheme))


def test_what_cannot_be_pickled_is_refused_when_it_is_read():
    stream = MultiProcessing(Mapping(batches(), lambda batch: batch))

    with pytest.raises(RecipeError, match="^MultiProcessing: .* cannot be sent .* no lambdas"):
        stream.get_epoch_iterator()


SCRIPT = """
from fuel_data.datasets import IndexableDataset
from fuel_data.transformers import Mapping, MultiProcessing

def add_one(example):
    return (example[0] + 1,)

def main():
    below = IndexableDataset({"x": range(3)}).get_example_stream()
    with MultiProcessing(Mapping(below, add_one)) as stream:
        print([x for x, in stream])

"""


def run(script, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments, script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_functions_of_a_script_are_found(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "if __name__ == '__main__':\n    main()\n")

    done = run(script)

    assert (done.stdout, done.stderr) == ("[1, 2, 3]\n", "")
    assert run("script", "-m", cwd=tmp_path).stdout == "[1, 2, 3]\n"


def test_a_script_that_runs_when_it_is_imported_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "main()\n")

    done = run(script)

    assert done.returncode == 1
    assert "script.py was imported by the process in the background" in done.stderr
    assert 'Put what runs under `if __name__ == "__main__":`' in done.stderr


def test_functions_that_were_typed_in_are_refused():
    done = run(SCRIPT + "main()\n", "-c")

    assert "the stream has a function or class that was typed in" in done.stderr


def test_the_stream_below_is_read_in_the_other_process_only():
    below = batches()
    with MultiProcessing(below) as stream:
        assert len(list(stream)) == 5

    assert (below.is_open, below.epochs_begun, stream.epochs_begun) == (False, 0, 1)


def test_nested_processes_draw_what_the_pipeline_draws_and_stand_where_it_stands():
    def build(over):
        between = Mapping(over(batches()), jitter, random=True)
        return Mapping(over(between), jitter, random=True)

    alone = build(lambda stream: stream)
    with build(MultiProcessing) as stream:
        iterator, expected = stream.get_epoch_iterator(), alone.get_epoch_iterator()
        assert same_data([next(iterator) for _ in range(2)], [next(expected) for _ in range(2)])
        assert iterator.get_state() == expected.get_state()
        assert same_data(list(iterator), list(expected))
