import importlib.util
import traceback

import h5py
import numpy
import pytest

from fuel_data.datasets import IndexableDataset
from fuel_data.transformers import Mapping
from fuel_data.utils.tracebacks import describe_in_their_code

MODULE = """
def fail():
    try:
        first()
    except KeyError as error:
        raise ValueError("second") from error

def first():
    raise KeyError("first")

def end(data):
    raise StopIteration
"""


@pytest.fixture
def theirs(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("theirs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def caught(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        # As a command sees it, which is no code of the user's.
        return error.with_traceback(error.__traceback__.tb_next)
    raise AssertionError("it did not fail")


def test_a_chain_of_errors_is_shown_as_a_whole(theirs):
    path = theirs.__file__

    assert describe_in_their_code(caught(theirs.fail)) == (
        f'  File "{path}", line 4, in fail\n'
        "    first()\n"
        f'  File "{path}", line 9, in first\n'
        '    raise KeyError("first")\n'
        "KeyError: 'first'\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        f'  File "{path}", line 6, in fail\n'
        '    raise ValueError("second") from error\n'
        "ValueError: second"
    )


def test_their_code_is_found_behind_an_error_of_ours(theirs):
    stream = IndexableDataset({"x": numpy.arange(3)}).get_example_stream()
    mapped = Mapping(stream, theirs.end).get_epoch_iterator()

    text = describe_in_their_code(caught(next, mapped))

    assert f'  File "{theirs.__file__}", line 12, in end\n    raise StopIteration' in text
    assert "RuntimeError: Mapping: the function that it applies raised StopIteration" in text


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(IndexableDataset, ({"x": [1], "y": [1, 2]},)), (numpy.concatenate, ([],)), (int, ("a",))],
)
def test_without_code_of_theirs_the_error_speaks_for_itself(function, arguments):
    assert describe_in_their_code(caught(function, *arguments)) is None


def test_code_that_cannot_be_read_is_theirs():
    text = describe_in_their_code(caught(compile, "x = (", "theirs.py", "exec"))

    assert text.endswith("SyntaxError: '(' was never closed") and 'File "theirs.py"' in text


def test_compiled_code_of_libraries_is_not_the_users():
    with h5py.File("nowhere", "w", driver="core", backing_store=False) as h5file:
        error = caught(lambda: h5file[()])

    trace = traceback.extract_tb(error.__traceback__)
    assert any(frame.filename.endswith(".pyx") for frame in trace)
    error.__traceback__ = error.__traceback__.tb_next
    assert describe_in_their_code(error) is None
