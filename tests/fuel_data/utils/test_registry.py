import h5py
import pytest

from fuel_data.commands.convert import main as convert
from fuel_data.utils.registry import registered


def test_modules_add_to_what_is_built_in(tmp_path, monkeypatch):
    (tmp_path / "a_registry.py").write_text("all_converters = [('two', 2)]")
    monkeypatch.syspath_prepend(tmp_path)

    assert registered([("one", 1)], ["a_registry"], "all_converters") == {"one": 1, "two": 2}


def test_a_module_without_the_list_is_refused():
    with pytest.raises(ValueError, match="'json' in the setting extra_converters must have"):
        registered([], ["json"], "all_converters")


def test_a_name_that_is_taken_is_refused(tmp_path, monkeypatch):
    (tmp_path / "b_registry.py").write_text("all_converters = [('one', 2)]")
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
