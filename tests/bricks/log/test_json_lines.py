"""The file of a JSONLinesLog."""

import json

import numpy
import pytest

from bricks.log import JSONLinesLog


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def test_a_row_is_in_the_file_when_training_goes_on_to_the_next_batch(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = 0.5
    log[1]["error"] = 0.25
    log.peek(2)

    assert lines(log.path) == [{"iterations_done": 1, "cost": 0.5, "error": 0.25}]


def test_the_present_row_is_in_the_file_after_a_flush(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = 0.5
    assert not log.path.exists()
    log.flush()

    assert lines(log.path) == [{"iterations_done": 1, "cost": 0.5}]


def test_numbers_stand_in_the_file_as_numbers_and_their_types_beside_them(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = numpy.float32(0.5)
    log[1]["histogram"] = numpy.array([1, 2], dtype=numpy.int8)
    log[1]["bad"] = float("nan")
    log.flush()

    assert lines(log.path) == [
        {
            "iterations_done": 1,
            "cost": 0.5,
            "histogram": [1, 2],
            "bad": "nan",
            "_types": {"cost": "<f4", "histogram": "|i1[2]", "bad": "float"},
        }
    ]


def test_records_that_come_late_make_a_second_line_with_only_these(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = 0.5
    log.flush()
    log[1]["error"] = 0.25
    log.flush()

    assert lines(log.path)[1] == {"iterations_done": 1, "error": 0.25}
    assert JSONLinesLog.read(log.path)[1] == {"cost": 0.5, "error": 0.25}


def test_lines_after_the_checkpoint_are_cut_off_and_the_file_is_the_same_file(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = 1.0
    log.flush()
    state = log.get_state()
    inode = log.path.stat().st_ino
    log[2]["cost"] = -2.0
    log.flush()
    with open(log.path, "ab") as file:
        file.write(b'{"iterations_done": 3, "co')
    again = JSONLinesLog(log.path)
    again.set_state(state)
    again.resume()
    again[2]["cost"] = 2.0
    again.flush()

    assert lines(log.path) == [
        {"iterations_done": 1, "cost": 1.0},
        {"iterations_done": 2, "cost": 2.0},
    ]
    assert log.path.stat().st_ino == inode


def test_a_file_that_was_lost_is_written_again_from_the_checkpoint(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = 1.0
    log[2]["cost"] = 2.0
    log.flush()
    again = JSONLinesLog(tmp_path / "elsewhere.jsonl")
    again.set_state(log.get_state())
    again[3]["cost"] = 3.0
    again.flush()

    assert [line["cost"] for line in lines(again.path)] == [1.0, 2.0, 3.0]


def test_the_file_of_another_run_is_kept_under_another_name(tmp_path):
    path = tmp_path / "log.jsonl"
    for cost in (1.0, 2.0, 3.0):
        log = JSONLinesLog(path)
        log[1]["cost"] = cost
        log.flush()

    kept = [tmp_path / "log.jsonl.1", tmp_path / "log.jsonl.2", path]
    assert [lines(file)[0]["cost"] for file in kept] == [1.0, 2.0, 3.0]


def test_a_log_that_is_only_read_does_not_touch_the_file(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = 1.0
    log.flush()
    state = log.get_state()
    log[2]["cost"] = 2.0
    log.flush()
    again = JSONLinesLog(log.path)
    again.set_state(state)
    _ = again[1]["cost"], again.peek(7), again.get_state()

    assert len(lines(log.path)) == 2


def test_a_name_that_the_file_uses_itself_is_refused(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["iterations_done"] = 1

    with pytest.raises(ValueError, match="'iterations_done' cannot be the name of a record"):
        log.flush()


def test_reading_leaves_out_a_line_that_is_not_whole(tmp_path):
    log = JSONLinesLog(tmp_path / "log.jsonl")
    log[1]["cost"] = numpy.float32(0.1)
    log.flush()
    with open(log.path, "ab") as file:
        file.write(b'{"iterations_done": 2, "co')
    read = JSONLinesLog.read(log.path)

    assert read == {1: {"cost": numpy.float32(0.1)}}
    assert read[1]["cost"].dtype == numpy.float32


def test_reading_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("[1]\n")

    with pytest.raises(ValueError, match="notes.txt is not the file of a JSONLinesLog"):
        JSONLinesLog.read(tmp_path / "notes.txt")
