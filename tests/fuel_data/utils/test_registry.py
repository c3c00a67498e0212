import pytest

from fuel_data.utils.registry import registered


def test_modules_add_to_what_is_built_in(tmp_path, monkeypatch):
    (tmp_path / "a_registry.py").write_text("all_converters = [('two', 2)]")
    monkeypatch.syspath_prepend(tmp_path)

    assert registered([("one", 1)], ["a_registry"], "all_converters") == {"one": 1, "two": 2}


def test_a_module_without_the_list_is_refused():
    with pytest.raises(ValueError, match="'json' in the setting extra_converters must be"):
        registered([], ["json"], "all_converters")


def test_a_name_that_is_taken_is_refused(tmp_path, monkeypatch):
    (tmp_path / "b_registry.py").write_text("all_converters = [('one', 2)]")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ValueError, match="'b_registry' names 'one' in `all_converters`, which is"):
        registered([("one", 1)], ["b_registry"], "all_converters")
