import os
import pickle
import sys
from pathlib import Path

import numpy
import pytest
from server_helpers import RECIPES

from fuel_data.server.errors import RecipeError
from fuel_data.server.recipe import Recipe, build_from_plain


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.endswith("_recipes") or "helper" in name:
            del sys.modules[name]


def test_a_file_is_loaded_by_its_path_and_called_with_the_arguments():
    stream = Recipe(f"{RECIPES}:counted", {"num_examples": 6, "batch_size": 3}).build()

    assert stream.sources == ("x", "y")
    assert stream.num_batches == 2


def test_a_file_imports_what_lies_beside_it(tmp_path):
    (tmp_path / "helper_beside.py").write_text("from fuel_data.testing.pipelines import LEAVES\n")
    (tmp_path / "some_recipes.py").write_text(
        "import helper_beside\ndef build():\n    return helper_beside.LEAVES[0].build(5)\n"
    )

    stream = Recipe(f"{tmp_path}/some_recipes.py:build").build()

    assert hasattr(stream, "get_epoch_iterator")


def test_a_file_named_like_a_loaded_module_does_not_take_its_place(tmp_path):
    (tmp_path / "json.py").write_text("def build():\n    return 1\n")
    before = sys.modules["json"]

    with pytest.raises(RecipeError, match="must return a data stream, but returned a int"):
        Recipe(f"{tmp_path}/json.py:build").build()

    assert sys.modules["json"] is before


def test_a_module_is_found_in_the_folders_that_the_recipe_was_made_in(tmp_path, monkeypatch):
    (tmp_path / "moved_recipes.py").write_text(Path(RECIPES).read_text())
    monkeypatch.chdir(tmp_path)
    plain = Recipe("moved_recipes:in_order", {"batch_size": 5}).to_plain()
    monkeypatch.chdir("/")

    stream = build_from_plain(**plain).build()

    assert stream.num_batches == 2


def test_a_relative_path_is_made_absolute(tmp_path, monkeypatch):
    (tmp_path / "some_recipes.py").write_text("")
    monkeypatch.chdir(tmp_path)
    recipe = Recipe("some_recipes.py:build")
    monkeypatch.chdir("/")

    assert recipe.to_plain()["target"] == f"{tmp_path}/some_recipes.py:build"


def test_a_saved_recipe_is_found_after_its_project_was_moved(tmp_path, monkeypatch):
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "data").mkdir(parents=True)
    (old / "data" / "some_recipes.py").write_text("")
    monkeypatch.chdir(old)
    saved = pickle.dumps(Recipe("data/some_recipes.py:build"))
    os.rename(old, new)
    monkeypatch.chdir(new)

    assert pickle.loads(saved).find_file() == str(new / "data" / "some_recipes.py")


def test_tuples_and_numpy_numbers_become_plain():
    recipe = Recipe("a:b", {"shape": (1, (2, 3)), "size": numpy.int64(4), "names": {"k": [None]}})

    assert recipe.arguments == {"shape": [1, [2, 3]], "size": 4, "names": {"k": [None]}}
    assert type(recipe.arguments["size"]) is int


def test_only_what_a_file_defines_can_have_been_meant(tmp_path):
    (tmp_path / "named.py").write_text(
        "from collections import OrderedDict\nfrom os.path import join\n"
        "def stream(): ...\nclass Stream: ...\nLIST = []\n"
    )

    with pytest.raises(RecipeError, match=r"no function 'x'\. Known: Stream, stream\.$"):
        Recipe(f"{tmp_path}/named.py:x").build()


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        ("no_colon.py", {}, "expected 'module:function' or 'file.py:function', got 'no_colon.py'"),
        ("module:not a name", {}, "got 'module:not a name'"),
        ("missing.py:build", {}, "there is no file /.*/missing.py, from 'missing.py:build'"),
        ("a:b", {"x": [1, {"k": print}]}, r"the argument x\[1\]\['k'\] must be None, a number"),
        ("a:b", {"x": numpy.zeros(2)}, "got a ndarray. Let the function build it"),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_refused_when_it_is_made(target, arguments, words):
    with pytest.raises(RecipeError, match=words):
        Recipe(target, arguments)


@pytest.mark.parametrize(
    ("target", "arguments", "words"),
    [
        (f"{RECIPES}:countd", {}, "there is no function 'countd'. Did you mean 'counted'"),
        (f"{RECIPES}:VARIABLE", {}, "there is no function 'VARIABLE'"),
        (f"{RECIPES}:counted", {"batchsize": 3}, "no argument 'batchsize'. .* 'batch_size'"),
        (f"{RECIPES}:needs", {}, r"needs\(path\): missing a required argument: 'path'"),
        (f"{RECIPES}:no_stream", {}, "must return a data stream, but returned a list"),
        ("no_such_module:build", {}, "no module 'no_such_module'.* Name the file instead"),
        ("fuel_data.no_such:build", {}, "there is no module 'fuel_data.no_such'"),
    ],
)
def test_a_recipe_that_leads_nowhere_is_an_error_in_words(target, arguments, words):
    with pytest.raises(RecipeError, match=words):
        Recipe(target, arguments).build()


def test_an_error_inside_the_function_is_its_own():
    with pytest.raises(KeyError, match="gone"):
        Recipe(f"{RECIPES}:needs", {"path": "gone"}).build()


def test_an_import_that_fails_inside_the_module_is_its_own(tmp_path, monkeypatch):
    (tmp_path / "broken_recipes.py").write_text("import no_such_dependency\n")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        Recipe("broken_recipes:build").build()
