"""Streams that go to a server process as they are, by pickle, where there is no recipe.

Only the process that made the pickle gives it to the process that it has started, through a pipe;
nothing that comes from elsewhere is unpickled.

A function or class of the running script is found by importing the script in the new process, once,
and only if the stream has one: what runs must then stand under ``if __name__ == "__main__":``.
"""

import importlib
import importlib.util
import io
import os
import pickle
import sys
from types import ModuleType
from typing import Any

from fuel_data.server.errors import RecipeError

_MAIN = "_fuel_main"


class PickledStream:
    """What `ServerProcess` takes in place of a recipe.

    Parameters
    ----------
    stream : AbstractDataStream
        What is served.
    who : str
        Who starts the server, for errors.
    """

    arguments: dict[str, Any] = {}

    def __init__(self, stream: Any, who: str) -> None:
        self.stream = stream
        self.who = who
        self.target = f"{who} of a {type(stream).__name__}"

    def to_plain(self) -> dict[str, Any]:
        """Say where the new process finds what is pickled by name.

        Returns
        -------
        dict of plain data
            The arguments of `SentStream`.

        Raises
        ------
        RecipeError
            If this process is only importing the script for another one.
        """
        main = sys.modules["__main__"]
        if _MAIN in sys.modules and getattr(sys.modules[_MAIN], "_is_being_imported", False):
            raise RecipeError(
                f"{self.who}: the script {sys.modules[_MAIN].__file__} was imported by the process "
                "in the background, which looks for a function of it, and would now start the "
                'next one. Put what runs under `if __name__ == "__main__":`, or move the function '
                "to a module."
            )
        spec = getattr(main, "__spec__", None)
        path = getattr(main, "__file__", None)
        return {
            "main_module": None if spec is None else spec.name,
            "main_path": None if path is None else os.path.abspath(path),
            "folders": [os.path.abspath(folder) for folder in sys.path],
        }

    def payload(self) -> bytes:
        """Pickle the stream.

        Returns
        -------
        bytes

        Raises
        ------
        RecipeError
            If it cannot be pickled.
        """
        try:
            return pickle.dumps(self.stream, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise RecipeError(
                f"{self.who}: {self.stream!r} cannot be sent to another process: {error}. Use "
                "functions that have a name in a module or in the script, no lambdas, and no open "
                "files; or name a function that builds the stream: serve('file.py:function')."
            ) from error


class SentStream:
    """What the new process makes of it.

    Parameters
    ----------
    payload : bytes
        From `PickledStream.payload`.
    main_module, main_path : str or None
        The script that ran where it was pickled.
    folders : list of str
        Where that process looked for modules.
    """

    def __init__(
        self, payload: bytes, main_module: str | None, main_path: str | None, folders: list[str]
    ) -> None:
        self._payload = payload
        self._main = main_module, main_path
        self._folders = folders

    def build(self) -> Any:
        """Unpickle the stream.

        Returns
        -------
        AbstractDataStream
        """
        sys.path.extend(folder for folder in self._folders if folder not in sys.path)
        payload, self._payload = self._payload, b""
        return _Unpickler(payload, self._main).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, payload: bytes, main: tuple[str | None, str | None]) -> None:
        super().__init__(io.BytesIO(payload))
        self._main = main

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":
            module = _import_main(*self._main).__name__
        return super().find_class(module, name)


def _import_main(name: str | None, path: str | None) -> ModuleType:
    """Import the script of the process that sent the stream, without running it as a script."""
    if name is not None:
        return importlib.import_module(name)
    if path is None or not os.path.isfile(path):
        raise RecipeError(
            "the stream has a function or class that was typed in or piped in, which no other "
            "process can import. Put it into a file."
        )
    if _MAIN not in sys.modules:
        spec = importlib.util.spec_from_file_location(_MAIN, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MAIN] = module
        module._is_being_imported = True  # type: ignore[attr-defined]
        spec.loader.exec_module(module)
        module._is_being_imported = False  # type: ignore[attr-defined]
    return sys.modules[_MAIN]
