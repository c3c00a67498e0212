import re

import h5py
import pytest

from fuel_data.commands.convert import main as convert
from fuel_data.utils.registry import registered


def test_modules_add_to_what_is_built_in(tmp_path, monkeypatch):
    (tmp_path / "a_registry.py").write_text("all_converters = [('two', len)]")
    monkeypatch.syspath_prepend(tmp_path)

    found = registered([("one", abs)], ["a_registry"], "all_converters")
    assert found == {"one": abs, "two": len}


def test_a_module_without_the_list_is_refused():
    with pytest.raises(ValueError, match="'json' in the setting extra_converters must have"):
        registered([], ["json"], "all_converters")


def test_a_name_that_is_taken_is_refused(tmp_path, monkeypatch):
    (tmp_path / "b_registry.py").write_text("all_converters = [('one', len)]")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ValueError, match="'b_registry' names 'one' in `all_converters`, which is"):
        registered([("one", 1)], ["b_registry"], "all_converters")


OWN = """
from fuel_data.converters import Converter
from fuel_data.downloaders import Downloader

class Towns(Converter):
    \"\"\"Towns of the Rhineland.\"\"\"

    name = "towns"
    files = ("towns.txt",)

    def add_arguments(self, parser):
        parser.add_argument("--limit", type=int)

    def read(self, towns, limit):
        with open(towns) as lines:
            yield "train", "names", lines.read().split()[:limit]

class TownsFiles(Downloader):
    name = "towns"
"""


def test_a_file_of_the_users_gives_its_classes(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text(OWN)
    (tmp_path / "towns.txt").write_text("Bonn Köln Neuss")
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", f"{tmp_path}/json.py")
    monkeypatch.chdir(tmp_path)

    assert convert(["towns", "--limit", "2"]) == 0

    with h5py.File("towns.hdf5") as file:
        assert [name.decode() for name in file["names"]] == ["Bonn", "Köln"]


class Point:
    def __init__(self, text):
        self.text = text

    def load(self):
        scope = {"__name__": "a_package"}
        exec(self.text, scope)
        return scope["TownsFiles"]


def test_packages_give_classes_by_entry_points_and_broken_ones_are_left_out(monkeypatch, caplog):
    points = [Point(OWN), Point("import not_there")]
    groups = {"fuel_data.downloaders": points}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: groups.get(group, []))

    found = registered([("one", 1)], [], "all_downloaders")

    assert set(found) == {"one", "towns"}
    assert "No module named 'not_there'" in caplog.text


def test_a_module_that_gives_nothing_is_refused(tmp_path):
    (tmp_path / "empty.py").write_text("from fuel_data.converters import Converter")

    with pytest.raises(ValueError, match="must have a class with Converter as its base and a `nam"):
        registered([], [f"{tmp_path}/empty.py"], "all_converters")
    with pytest.raises(ValueError, match=r"'.*missing.py' in the setting extra_converters must be"):
        registered([], [f"{tmp_path}/missing.py"], "all_converters")


FUNCTION = """
import os
def fill(subparser):
    def convert(directory, output_directory, output_filename="a.hdf5"):
        path = os.path.join(output_directory, output_filename)
        {}
    return convert
all_converters = [("a", fill)]
"""
CLASS = """
from fuel_data.converters import Converter
class A(Converter):
    name = "a"
    {}
"""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = (", r"(?s)must be importable:\n  File .*line 1\n.*never closed"),
        ("1 / 0", r"must be importable:\n  File .*line 1, in <module>\n.*\n(.*\n)?ZeroDivisionE"),
        (
            "all_converters = 3",
            r"must be a list of \(name, fill_subparser\), .* got 3\.",
        ),
        ("all_converters = [('a',)]", r"a text and a function; got \[\('a',\)\]\."),
        (
            "all_converters = [('a', lambda subparser: {}[1])]",
            r"^fuel-convert: a: its `fill_subparser` failed:\n  File (.*\n)*KeyError: 1\n$",
        ),
        (
            "all_converters = [('a', lambda subparser: None)]",
            "its `fill_subparser` must return the function that does the work; got None.",
        ),
        (FUNCTION.format("return None"), "return a list of their paths; got None."),
        (FUNCTION.format("return '/a/path'"), "return a list of their paths; got '/a/path'."),
        (FUNCTION.format("return ['missing']"), "return a list of their paths; got 'missing'."),
        (
            FUNCTION.format("open(path, 'w').close(); return [path]"),
            "^fuel-convert a: the converter must write HDF5 files into `output_directory`",
        ),
        (
            FUNCTION.format("raise KeyError('bug')"),
            r"^fuel-convert a: the code of it failed:\n  File .*line 6, in convert\n.*\n"
            r"KeyError: 'bug'\n$",
        ),
        (
            CLASS.format("files = 'x.txt'"),
            r"A: `files` must .* the text 'x.txt'. Write \('x.txt',\)",
        ),
        (CLASS.format(""), "NotImplementedError|A must define `read`, which gives"),
        (
            CLASS.format("read = lambda self: 3"),
            r"A.read must give \(split, source, array\) .* got 3",
        ),
        (
            CLASS.format("read = lambda self: [('train', 'x')]"),
            r"must have \(split, source, array\) or .* source; got \('train', 'x'\)\.",
        ),
    ],
)
def test_what_is_wrong_with_a_converter_of_the_users_is_said(
    tmp_path, monkeypatch, capsys, content, words
):
    (tmp_path / "wrong.py").write_text(content)
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", f"{tmp_path}/wrong.py")
    monkeypatch.chdir(tmp_path)

    assert convert(["a"]) == 1

    error = capsys.readouterr().err
    assert re.search(words, error)
    assert "fuel_data/" not in error.replace(str(tmp_path), "")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["wrong.py"]


def test_a_function_that_is_set_as_the_default_is_taken(tmp_path, monkeypatch):
    (tmp_path / "fuels.py").write_text(
        "def convert(directory, output_directory): raise ValueError('called')\n"
        "all_converters = [('a', lambda subparser: subparser.set_defaults(func=convert))]\n"
    )
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", f"{tmp_path}/fuels.py")
    monkeypatch.chdir(tmp_path)

    assert convert(["a"]) == 1
