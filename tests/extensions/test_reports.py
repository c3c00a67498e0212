"""What is printed."""

import numpy

from extensions import FinishAfter, Printing
from extensions.reports import format_row, format_value


def test_rows_are_printed_with_aligned_values(make_loop, capsys):
    records = {3: {"cost": 0.123456789, "validation_cost": numpy.float32(1e-7)}}
    make_loop(FinishAfter(after_n_epochs=1), Printing(), records=records).run()

    assert capsys.readouterr().out.splitlines() == [
        "Before epoch 1 (0 batches, 0 epochs)",
        "Epoch 1 done (3 batches, 1 epochs)",
        "    cost                       0.123457",
        "    validation_cost            1e-07",
        "    training_finish_requested  True",
        "Training has ended (3 batches, 1 epochs)",
        "    cost                       0.123457",
        "    validation_cost            1e-07",
        "    training_finish_requested  True",
        "    training_finished          True",
    ]


def test_printing_makes_no_rows(make_loop):
    loop = make_loop(Printing(after_batch=True), FinishAfter(after_n_batches=2))
    loop.run()

    assert list(loop.log) == [2]


def test_the_trace_of_an_exception_is_not_printed_again():
    assert format_row("title", {"got_exception": "Traceback", "a": 1}) == "title\n    a  1"


def test_values_are_printed_in_a_few_characters():
    assert format_value(0.5) == "0.5"
    assert format_value(numpy.float32(1 / 3)) == "0.333333"
    assert format_value(float("nan")) == "nan"
    assert format_value(True) == "True"
    assert format_value(numpy.array(2.0)) == "2"
    assert format_value(numpy.array([[1.0, 2.5], [3, 4]])) == "[[1. , 2.5], [3. , 4. ]]"
    assert format_value(("a", "b")) == "a, b"
    assert format_value(numpy.arange(10)) == "int64 array of shape (10,) from 0 to 9"
    assert format_value(numpy.array(["a"] * 10)) == "<U1 array of shape (10,)"
