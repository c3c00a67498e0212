import ast
import pickle
from pathlib import Path

import fuel_data
from fuel_data.exceptions import AxisLabelsMismatchError, ConfigurationError, MissingInputFiles


def test_missing_files_are_listed_and_survive_a_pickle():
    error = MissingInputFiles("Files are missing in /data", (name for name in ("a.gz", "b.gz")))
    assert str(error) == "Files are missing in /data: a.gz, b.gz"
    assert pickle.loads(pickle.dumps(error)).filenames == ["a.gz", "b.gz"]


def test_errors_can_be_caught_as_what_they_are():
    assert issubclass(AxisLabelsMismatchError, ValueError)
    assert issubclass(ConfigurationError, AttributeError)


def _caught(tree):
    """Give what is raised inside a `try` that catches it by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            names = {
                name.id for h in node.handlers for name in ast.walk(h.type or h) if _is_name(name)
            }
            for inner in (inner for line in node.body for inner in ast.walk(line)):
                if isinstance(inner, ast.Raise) and _is_name(inner.exc) and inner.exc.id in names:
                    yield inner


def _is_name(node):
    return isinstance(node, ast.Name)


def _wordless(tree):
    caught = set(_caught(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Raise) or node.exc is None or node in caught:
            continue
        call = node.exc if isinstance(node.exc, ast.Call) else None
        name = node.exc.func if call else node.exc
        # StopIteration is no error; what was caught may be raised again.
        is_class = _is_name(name) and name.id[0].isupper()
        if is_class and name.id != "StopIteration" and not (call and call.args):
            yield f"{name.id} in line {node.lineno}"


def test_every_error_that_is_raised_has_words():
    root = Path(fuel_data.__file__).parent
    found = {
        str(path.relative_to(root)): faults
        for path in sorted(root.rglob("*.py"))
        if (faults := list(_wordless(ast.parse(path.read_text()))))
    }

    assert found == {}
    assert list(_wordless(ast.parse("raise ValueError"))) == ["ValueError in line 1"]
