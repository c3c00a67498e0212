"""Recipes: how to build a stream, in words that another process understands.

A recipe is ``'module:function'`` or ``'file.py:function'`` with plain arguments. The function
builds a stream and returns it. It is imported by the server, never pickled, so what else its module
imports is what the server imports: keep it apart from the training script's graph.

>>> Recipe("pipelines:train_stream", {"batch_size": 128})
Recipe('pipelines:train_stream', {'batch_size': 128})

*Where files are looked for.* The path of a file is made absolute when the recipe is made. A recipe
that was saved also remembers how it lay to the working directory, and is looked for there if the
absolute path has gone: so a project may be moved as a whole. The file's folder goes to the front of
the import path, as for a script. A module is looked for on the usual path, then in the folder of
the running script and in the working directory at the time the recipe was made.
"""

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from fuel_data.server.errors import RecipeError
from fuel_data.state import is_plain
from fuel_data.utils.names import nearest_name
from fuel_data.utils.tracebacks import describe_in_their_code


class Recipe:
    """A function that builds a stream, by name, and its arguments.

    Parameters
    ----------
    target : str
        ``'module:function'`` or ``'file.py:function'``.
    arguments : mapping of str to plain data, optional
        Keyword arguments: None, bool, int, float, str, and lists and dicts of them.

    Raises
    ------
    RecipeError
        If `target` has another form, the file does not exist, or an argument is not plain.
    """

    def __init__(self, target: str, arguments: Mapping[str, Any] | None = None) -> None:
        place, colon, function = target.rpartition(":")
        if not colon or not place or not function.isidentifier():
            raise RecipeError(
                f"recipe: expected 'module:function' or 'file.py:function', got {target!r}."
            )
        self.target = target
        self.function = function
        self.arguments = {
            name: _plain(value, name) for name, value in dict(arguments or {}).items()
        }
        self.module: str | None = None
        self.path: str | None = None
        if place.endswith(".py"):
            self.path = str(Path(place).absolute())
            self.relative_path = os.path.relpath(self.path)
            self.find_file()
        else:
            self.module = place
        self.folders = list(dict.fromkeys(os.path.abspath(path) for path in (sys.path[0], "")))

    def find_file(self) -> str:
        """Find the file of a recipe that names one.

        Returns
        -------
        str
            Its absolute path.

        Raises
        ------
        RecipeError
            If it is neither where it was nor at the same place relative to the working directory.
        """
        assert self.path is not None
        for path in (self.path, os.path.abspath(self.relative_path)):
            if os.path.isfile(path):
                return path
        raise RecipeError(f"recipe: there is no file {self.path}, from {self.target!r}.")

    def to_plain(self) -> dict[str, Any]:
        """Say what the server's process needs to know.

        Returns
        -------
        dict of plain data
            The arguments of `build_from_plain`.
        """
        place = self.module if self.path is None else self.find_file()
        return {
            "target": f"{place}:{self.function}",
            "arguments": self.arguments,
            "folders": self.folders,
        }

    def build(self) -> Any:
        """Import the function and call it.

        Returns
        -------
        AbstractDataStream
            What it returns.

        Raises
        ------
        RecipeError
            If there is no such function, it does not take the arguments, or it returns no stream.
        """
        function = self._import_function()
        self._check_arguments(function)
        stream = function(**self.arguments)
        if not hasattr(stream, "get_epoch_iterator"):
            raise RecipeError(
                f"recipe: {self.target} must return a data stream, but returned a "
                f"{type(stream).__name__}."
            )
        return stream

    def _import_function(self) -> Any:
        module = self._import_module()
        function = getattr(module, self.function, None)
        if not callable(function):
            names = [name for name, value in vars(module).items() if _is_meant(value, module)]
            raise RecipeError(
                f"recipe: {self.target}: there is no function {self.function!r}."
                f"{nearest_name(self.function, names)}"
            )
        return function

    def _import_module(self) -> ModuleType:
        if self.path is not None:
            return _import_file(self.find_file())
        assert self.module is not None
        sys.path.extend(folder for folder in self.folders if folder not in sys.path)
        try:
            return importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{self.module}.".startswith(f"{error.name}."):
                raise
            raise RecipeError(
                f"recipe: {self.target}: there is no module {error.name!r} on the import path or "
                f"in {' or '.join(self.folders)}. Name the file instead: 'path/to/file.py:"
                f"{self.function}'."
            ) from error

    def _check_arguments(self, function: Any) -> None:
        try:
            signature = inspect.signature(function)
        except ValueError:
            return
        takes = signature.parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values()):
            for name in self.arguments:
                if name not in takes:
                    raise RecipeError(
                        f"recipe: {self.target} has no argument {name!r}."
                        f"{nearest_name(name, takes)}"
                    )
        try:
            signature.bind(**self.arguments)
        except TypeError as error:
            raise RecipeError(f"recipe: {self.target}{signature}: {error}.") from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"Recipe({self.target!r}, {self.arguments!r})"


def _is_meant(value: Any, module: ModuleType) -> bool:
    """Tell whether a name of a module can have been meant, which was not only imported there."""
    return callable(value) and getattr(value, "__module__", None) == module.__name__


@contextlib.contextmanager
def failures_of_recipes() -> Iterator[None]:
    """Let errors in the code of recipes be shown by the lines of that code, without ours before.

    Yields
    ------
    None
        The block builds and reads streams of recipes.

    Raises
    ------
    RecipeError
        If code of the user's fails.
    """
    try:
        yield
    except Exception as error:
        text = describe_in_their_code(error)
        if text is None:
            raise
        raise RecipeError(f"the code of a recipe failed:\n{text}") from error


def parse_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """Read the arguments of a recipe as a command line has them.

    Parameters
    ----------
    pairs : sequence of str
        ``'NAME=VALUE'``; the value is JSON, YAML, or else text.

    Returns
    -------
    dict of str to plain data

    Raises
    ------
    RecipeError
        If one has another form, or a name comes twice.

    Examples
    --------
    >>> parse_arguments(["batch_size=128", "name=train", "sizes=[1, 2]"])
    {'batch_size': 128, 'name': 'train', 'sizes': [1, 2]}
    """
    arguments = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise RecipeError(f"--argument: expected NAME=VALUE, got {pair!r}.")
        if name in arguments:
            raise RecipeError(f"--argument: {name!r} is given twice, the second time as {pair!r}.")
        arguments[name] = _parse_value(text)
    return arguments


def _parse_value(text: str) -> Any:
    import yaml

    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    # YAML makes dates of some text, which a recipe does not take.
    return value if is_plain(value) else text


def build_from_plain(target: str, arguments: dict[str, Any], folders: list[str]) -> Recipe:
    """Make a recipe in the process that is to follow it.

    Parameters
    ----------
    target : str
        ``'module:function'`` or ``'/absolute/path/file.py:function'``.
    arguments : dict of plain data
        Keyword arguments of the function.
    folders : list of str
        Absolute paths of further folders in which a module is looked for.

    Returns
    -------
    Recipe
        As `Recipe.to_plain` described it.
    """
    recipe = Recipe(target, arguments)
    recipe.folders = folders
    return recipe


def _import_file(path: str) -> ModuleType:
    name = Path(path).stem
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == path:
            return loaded
        # Another module has this name already, of the standard library perhaps.
        name = f"_fuel_recipe_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # In place before it runs, as `import` does it: dataclasses and others look themselves up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, numpy.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{place}]") for place, item in enumerate(value)]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {key: _plain(item, f"{path}[{key!r}]") for key, item in value.items()}
    raise RecipeError(
        f"recipe: the argument {path} must be None, a number, text, or a list or dict of them, to "
        f"be sent to another process; got a {type(value).__name__}. Let the function build it."
    )
