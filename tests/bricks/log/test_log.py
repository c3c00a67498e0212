"""What every backend of the log promises."""

import pickle

import numpy
import pytest
from numpy.testing import assert_array_equal

from bricks.log import BACKENDS, JSONLinesLog, SQLiteLog, TrainingLog

BUILDERS = {
    "python": lambda folder: TrainingLog(),
    "sqlite": lambda folder: SQLiteLog(folder / "log.sqlite"),
    "jsonlines": lambda folder: JSONLinesLog(folder / "log.jsonl"),
}

VALUES = {
    "int": 3,
    "big int": 2**70,
    "bool": True,
    "float": 0.1,
    "nan": float("nan"),
    "inf": float("-inf"),
    "none": None,
    "string": "a 'string' with \u00fcml\u00e4uts\n",
    "float32": numpy.float32(0.1),
    "float32 nan": numpy.float32("nan"),
    "float16": numpy.float16(0.1),
    "float64": numpy.float64(0.1),
    "int64": numpy.int64(-(2**63)),
    "uint64": numpy.uint64(2**64 - 1),
    "numpy bool": numpy.bool_(True),
    "array": numpy.array([[0.1, numpy.inf], [numpy.nan, -0.0]], dtype=numpy.float32),
    "empty array": numpy.zeros((0, 3), dtype=numpy.int32),
    "scalar array": numpy.array(0.25),
    "complex": numpy.complex64(1 + 2j),
    "tuple": ("a", 1, (numpy.float32(2),)),
    "list": [1, [2.5, float("inf")], numpy.array([1.0, numpy.nan])],
    "dict": {"a": numpy.arange(3), "b": {"c": None}},
    "dict with int keys": {1: "one", (2, 3): "two, three"},
    "dict like a tag": {"__tuple__": [1]},
}


@pytest.fixture(params=sorted(BUILDERS))
def log(request, tmp_path):
    return BUILDERS[request.param](tmp_path)


def assert_same(value, expected):
    assert type(value) is type(expected)
    if isinstance(expected, dict):
        assert list(value) == list(expected)
        value, expected = list(value.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        for item, expected_item in zip(value, expected, strict=True):
            assert_same(item, expected_item)
    elif isinstance(expected, numpy.ndarray | numpy.generic):
        assert value.dtype == expected.dtype
        assert value.shape == expected.shape
        assert value.tobytes() == expected.tobytes()
    else:
        assert value == expected or (value != value and expected != expected)


def resumed(log, how):
    if how == "pickle":
        return pickle.loads(pickle.dumps(log))
    fresh = type(log)() if isinstance(log, TrainingLog) else type(log)(_path(log))
    fresh.set_state(log.get_state())
    return fresh


def _path(log):
    return log.database if isinstance(log, SQLiteLog) else log.path


def test_the_tests_cover_every_backend():
    assert set(BUILDERS) == set(BACKENDS)


def test_a_new_log_has_done_nothing(log):
    assert log.status["iterations_done"] == 0
    assert log.status["epochs_done"] == 0
    assert log.status["_epoch_ends"] == []
    assert log.status["resumed_from"] is None
    assert len(log) == 0


def test_records_are_written_and_read_by_time_and_name(log):
    log[3]["cost"] = 0.5
    log[3]["error"] = 0.25
    log[7]["cost"] = 0.125

    assert log[3] == {"cost": 0.5, "error": 0.25}
    assert log[7]["cost"] == 0.125
    assert list(log) == [3, 7]
    assert len(log) == 2
    assert 3 in log
    assert 4 not in log


def test_a_row_can_be_assigned_as_a_whole(log):
    log[1]["old"] = 1
    log[1] = {"new": 2}

    assert log[1] == {"new": 2}


def test_a_record_can_be_deleted(log):
    log[1]["gone"] = 1
    log[1]["kept"] = 2
    log.flush()
    del log[1]["gone"]
    log.flush()

    assert log[1] == {"kept": 2}
    assert "gone" not in log.peek(1)


def test_records_of_the_present_can_be_forgotten_with_their_row(log):
    log.status["iterations_done"] = 3
    log[2]["end"] = log[3]["end"] = True
    log.forget(["end", "unknown"])

    assert list(log) == [2]
    log[3]["kept"] = log[3]["end"] = True
    log.forget(["end"])
    assert log[3] == {"kept": True}


def test_peeking_at_a_time_makes_no_row(log):
    assert "cost" not in log.peek(5)
    assert len(log) == 0


@pytest.mark.parametrize("time", [-1, "1", 1.0, None, True])
def test_a_time_that_is_not_a_count_is_refused(log, time):
    with pytest.raises((ValueError, TypeError), match="int of at least 0; got"):
        log[time]


def test_a_time_may_be_an_integer_of_numpy(log):
    log[numpy.int64(2)]["cost"] = 1

    assert log[2] == {"cost": 1}
    assert type(next(iter(log))) is int


def test_the_rows_of_the_present_the_batch_before_and_the_last_epoch(log):
    log[4]["cost"] = 4
    log[5]["cost"] = 5
    log[6]["cost"] = 6
    log.status["iterations_done"] = 6
    log.status["_epoch_ends"] = [2, 4]

    assert log.current_row["cost"] == 6
    assert log.previous_row["cost"] == 5
    assert log.last_epoch_row["cost"] == 4


def test_rows_that_do_not_exist_yet_are_refused_in_words(log):
    with pytest.raises(ValueError, match="int of at least 0; got -1"):
        _ = log.previous_row
    with pytest.raises(ValueError, match="no epoch has ended yet"):
        _ = log.last_epoch_row


@pytest.mark.parametrize("name", sorted(VALUES))
@pytest.mark.parametrize("how", ["pickle", "state"])
def test_a_value_comes_back_with_its_type_and_its_bits(log, name, how):
    for time in (1, 2, 3):
        log[time][name] = VALUES[name]
    log.status["iterations_done"] = 3
    again = resumed(log, how)
    again.resume()

    for time in (1, 2, 3):
        assert_same(again[time][name], VALUES[name])


def test_values_of_several_types_under_one_name_keep_their_types(log):
    values = [1, 1.0, numpy.float32(1), True, "1", numpy.float64(1)]
    for time, value in enumerate(values):
        log[time]["mixed"] = value
    log.status["iterations_done"] = len(values)
    again = resumed(log, "state")

    for time, value in enumerate(values):
        assert_same(again[time]["mixed"], value)


def test_the_status_comes_back(log):
    log.status |= {"iterations_done": 4, "best": numpy.float32(0.1), "_epoch_ends": [2, 4]}
    again = resumed(log, "state")

    assert again.status == log.status
    assert_same(again.status["best"], numpy.float32(0.1))


def test_an_object_that_is_not_plain_is_refused_by_name_when_it_is_saved(log):
    log[3]["figure"] = object()

    with pytest.raises(TypeError, match="a object cannot be saved: log numbers"):
        log.get_state()
        log.flush()


def test_a_resumed_log_has_a_new_identity_and_knows_the_old_one(log):
    old = log.h_uuid
    log[1]["cost"] = 1.0
    log.status["iterations_done"] = 1
    again = resumed(log, "state")
    again.resume()

    assert again.h_uuid != old
    assert again.status["resumed_from"] == old
    assert again[1] == {"cost": 1.0}


@pytest.mark.parametrize("how", ["pickle", "state"])
def test_a_run_that_was_killed_twice_shows_each_row_once(log, how):
    log[1]["cost"] = 1.0
    log.status["iterations_done"] = 1
    for time in (2, 3):
        saved = resumed(log, how)
        log[time]["cost"] = -1.0
        log[time + 1]["cost"] = -2.0
        log.status["iterations_done"] = time + 1
        log.flush()
        log = saved
        log.resume()
        log.status["iterations_done"] = time
        log[time]["cost"] = float(time)

    assert {time: dict(log[time]) for time in log} == {
        1: {"cost": 1.0},
        2: {"cost": 2.0},
        3: {"cost": 3.0},
    }


def test_the_times_of_a_record_after_a_time(log):
    for time in (1, 3, 4, 6, 9):
        log[time]["best"] = True
    log[5]["other"] = True
    log.status["iterations_done"] = 8

    assert log.times_of("best", after=1) == [3, 4, 6]


def test_the_representation_says_what_was_done(log):
    log.status["iterations_done"] = 12
    log[3]["cost"] = 1

    assert repr(log) == f"<{type(log).__name__} {log.h_uuid}: 1 rows, 12 batches and 0 epochs done>"


def test_records_keep_their_order_within_each_row():
    log = TrainingLog()
    log[1]["a"], log[1]["b"] = 1, 2
    log[2]["b"], log[2]["a"] = 2, 1
    again = resumed(log, "state")

    assert [list(again[time]) for time in again] == [["a", "b"], ["b", "a"]]


def test_a_long_log_is_a_few_arrays():
    log = TrainingLog()
    for time in range(100):
        log[time]["cost"] = numpy.float32(time / 8)
    rows = log.get_state()["rows"]

    assert rows["layouts"] == [["cost"]]
    assert_array_equal(rows["times"], numpy.arange(100))
    assert_array_equal(rows["columns"]["cost"]["values"], numpy.arange(100, dtype="f4") / 8)
    assert rows["columns"]["cost"]["values"].dtype == numpy.float32


@pytest.mark.parametrize(
    ("of", "given_to", "missing"),
    [
        ("python", "jsonlines", "file_id"),
        ("python", "sqlite", "row"),
        ("jsonlines", "sqlite", "row"),
        ("sqlite", "python", "rows"),
        ("sqlite", "jsonlines", "rows and no file_id"),
    ],
)
def test_the_state_of_another_kind_of_log_is_refused_in_words(tmp_path, of, given_to, missing):
    state = BUILDERS[of](tmp_path).get_state()
    log = BUILDERS[given_to](tmp_path)
    log[3]["cost"] = 1.0

    with pytest.raises(ValueError, match=f"another kind: it has uuid.*no {missing}. Build the"):
        log.set_state(state)
    assert log[3] == {"cost": 1.0}
