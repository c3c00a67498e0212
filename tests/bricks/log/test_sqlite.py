"""The database of an SQLiteLog."""

import pickle
import sqlite3
import subprocess
import sys

import numpy
import pytest

from bricks.log import SQLiteLog


def entries(path):
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT time, key, value, type FROM entries ORDER BY time, key")
        rows = found.fetchall()
    connection.close()
    return rows


def test_numbers_can_be_queried_as_numbers(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite")
    log[1]["cost"] = numpy.float32(0.5)
    log[1]["error"] = 0.25
    log[2]["note"] = "text"
    log.flush()

    assert entries(log.database) == [
        (1, "cost", 0.5, "<f4"),
        (1, "error", 0.25, None),
        (2, "note", "text", None),
    ]


def test_no_entry_is_a_pickle(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite")
    log[1]["array"] = numpy.arange(3)
    log[1]["tuple"] = ("a", numpy.arange(2))
    log.flush()
    (_, _, array, array_type), (_, _, text, text_type) = entries(log.database)

    assert (array_type, array[:6]) == ("npy", b"\x93NUMPY")
    assert (text_type, text[:14]) == ("json", '{"__tuple__": ')


def test_another_connection_sees_rows_and_status_while_the_log_is_in_use(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite", flush_seconds=0)
    log[1]["cost"] = 0.5
    log.status["iterations_done"] = 1
    _ = log[2]

    assert entries(log.database) == [(1, "cost", 0.5, None)]
    with sqlite3.connect(log.database) as connection:
        found = connection.execute("SELECT value FROM status WHERE key = 'iterations_done'")
        assert found.fetchall() == [("1",)]
    connection.close()


def test_rows_are_held_back_until_they_are_due(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite", flush_seconds=3600)
    for time in range(10):
        log[time]["cost"] = time

    assert not log.database.exists()
    assert log[3]["cost"] == 3


def test_two_runs_share_a_database_without_seeing_each_other(tmp_path):
    first, second = (SQLiteLog(tmp_path / "log.sqlite") for _ in range(2))
    first[1]["cost"] = 1.0
    second[1]["cost"] = 2.0
    first.flush()
    second.flush()

    assert first[1] == {"cost": 1.0}
    assert second[1] == {"cost": 2.0}
    assert len(entries(first.database)) == 2


def test_rows_of_all_ancestors_are_read_from_the_database(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite")
    for time in range(1, 40):
        log[time]["cost"] = time
        log.status["iterations_done"] = time
        if time % 10 == 0:
            log.resume()
    log.flush()

    assert [log[time]["cost"] for time in log] == list(range(1, 40))


def test_a_row_that_is_held_by_a_caller_is_written_after_later_rows_were_flushed(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite")
    row = log[1]
    log[5]["cost"] = 5
    log.status["iterations_done"] = 5
    log.flush()
    row["late"] = 1
    log.flush()

    assert log[1] == {"late": 1}


def test_what_was_flushed_survives_a_kill(tmp_path):
    script = (
        "import os, signal, sys; from bricks.log import SQLiteLog; log = SQLiteLog(sys.argv[1]);"
        "log[1]['cost'] = 1.0; log.flush(); log[2]['cost'] = 2.0;"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "log.sqlite"
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)

    assert killed.returncode == -9
    assert entries(path) == [(1, "cost", 1.0, None)]


def test_a_database_that_does_not_hold_the_run_is_refused_and_not_made(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite")
    log[1]["cost"] = 1.0
    log.status["iterations_done"] = 1
    again = SQLiteLog(tmp_path / "another.sqlite")
    before = again.h_uuid

    with pytest.raises(ValueError, match=r"another.sqlite does not hold the run.*ignore=\['log'\]"):
        again.set_state(log.get_state())
    assert not again.database.exists()
    assert (again.h_uuid, again.status["iterations_done"]) == (before, 0)


def test_an_unpickled_log_does_not_pass_for_its_database_when_that_is_missing(tmp_path):
    log = SQLiteLog(tmp_path / "log.sqlite")
    log[1]["cost"] = 1.0
    pickled = pickle.dumps(log)
    log.database.unlink()
    again = pickle.loads(pickled)
    for _ in range(2):
        # As the main loop does with what was raised.
        again.current_row["got_exception"] = "refused"

        with pytest.raises(ValueError, match="log.sqlite does not hold the run"):
            again.flush()
        with pytest.raises(ValueError, match="log.sqlite does not hold the run"):
            again.resume()


def test_a_database_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "log.sqlite"
    path.write_text("this is not a database, and it is long enough to be looked at " * 20)
    log = SQLiteLog(path)
    log[1]["cost"] = 1.0

    with pytest.raises(OSError, match="log.sqlite cannot be used: file is not a database"):
        log.flush()


def test_a_missing_folder_is_named(tmp_path):
    log = SQLiteLog(tmp_path / "missing" / "log.sqlite")
    log[1]["cost"] = 1.0

    with pytest.raises(OSError, match="missing/log.sqlite cannot be used: unable to open"):
        log.flush()
