"""Pickles whose arrays lie beside them in an archive, and what cannot be pickled, in words.

Every array is stored once, under a name, and the pickle refers to it. The value of a shared
variable that the archive holds by name (a parameter, a buffer) is referred to by that name; any
other array gets a number.
"""

import io
import pickle
import sys
import types
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Apply, Variable
from aesara.link.basic import Container

from bricks.archive import Archive, ArchiveWriter
from bricks.config import config
from bricks.utils import change_recursion_limit

#: Where classes and functions are now that pickles know under another path, each as
#: ``'module.name': 'module.name'``.
MOVED: dict[str, str] = {}

PROTOCOL = 5
# Arrays that were pickled by numpy 1 or 2 name this package of theirs; each warns of the other's.
_NUMPY_CORE = "numpy._core." if int(numpy.__version__.partition(".")[0]) >= 2 else "numpy.core."
# Smaller ones stay in the pickle, where a header of their own would be longer than they are.
_SMALL = 1024


class NotPicklable(ValueError):
    """An object cannot be pickled; the message names what is in the way."""


class ArrayStore:
    """Give every array of some pickles a name in one archive, and write it there once.

    Parameters
    ----------
    writer : ArchiveWriter
        Where the arrays go, as ``<prefix>/<number>``.
    named : mapping of str to shared variable
        Variables whose values the archive holds under these names.
    prefix : str
        Folder of the arrays in the archive.
    """

    def __init__(
        self, writer: ArchiveWriter, named: Mapping[str, SharedVariable], prefix: str = "pickled"
    ):
        self.writer = writer
        self._prefix = prefix
        self._containers = {id(v.container): name for name, v in named.items()}
        # With the arrays themselves: one that is gone would leave its id to another one.
        self._stored: dict[int, tuple[str, numpy.ndarray]] = {}

    def name_of_value(self, container: Container) -> str | None:
        """Name the array that holds the value of a named variable.

        Parameters
        ----------
        container : Container
            Where Aesara keeps the value of a shared variable.

        Returns
        -------
        str or None
            The name in the archive; None for a variable that is not among the named ones.
        """
        return self._containers.get(id(container))

    def name_of_array(self, array: numpy.ndarray) -> str:
        """Name an array, after writing it if it is new.

        Parameters
        ----------
        array : array
            Of any shape, and any dtype but object. Told apart by identity, not by value.

        Returns
        -------
        str
            ``<prefix>/<number>``, the same each time for the same array.
        """
        if id(array) not in self._stored:
            name = f"{self._prefix}/{len(self._stored)}"
            self.writer.add_array(name, array)
            self._stored[id(array)] = name, array
        return self._stored[id(array)][0]


class ArrayPickler(pickle.Pickler):
    """Pickle into memory, with the arrays going to an archive.

    Parameters
    ----------
    file : binary file
        Where the pickle goes.
    store : ArrayStore
        Where the arrays go.
    protocol : int
        Of the pickle, at least 2.

    Attributes
    ----------
    main_names : list of str
        Classes and functions of ``__main__`` that the pickle refers to.
    local_names : list of str
        Functions and classes that are defined inside others, which no pickle can refer to.
    """

    def __init__(self, file: io.BytesIO, store: ArrayStore, protocol: int = PROTOCOL):
        super().__init__(file, protocol)
        self._store = store
        self._laid_out: set[Variable] = set()
        self.main_names: list[str] = []
        self.local_names: list[str] = []

    def reducer_override(self, obj: Any) -> Any:
        """Refer to arrays that the archive holds; notice what belongs to the script.

        Parameters
        ----------
        obj : object
            What is about to be pickled.

        Returns
        -------
        tuple or NotImplemented
            What makes the object again, as ``__reduce__`` gives it: a function, its arguments.
            NotImplemented leaves the object to pickle.
        """
        if type(obj) is numpy.ndarray:
            return self._refer_to(obj)
        if isinstance(obj, Variable):
            return self._lay_out(obj)
        if isinstance(obj, type | types.FunctionType):
            self._notice(obj)
        name = self._store.name_of_value(obj) if isinstance(obj, Container) else None
        if name is None:
            return NotImplemented
        options = (obj.readonly, obj.strict, obj.allow_downcast, obj.name)
        return make_container, (type(obj), obj.type, type(obj.storage), _Stored(name), *options)

    def _refer_to(self, array: numpy.ndarray) -> Any:
        if array.dtype.hasobject or array.nbytes < _SMALL:
            return NotImplemented
        return stored_array, (self._store.name_of_array(array),)

    def _lay_out(self, variable: Variable) -> Any:
        """Pickle what a variable is computed from before it, from the leaves on.

        A pickler that followed a graph from its output would nest as deep as the graph, and Python
        3.12 lets no pickler nest deeper than some 300 objects. When the variable is met inside of
        what this returns, it is pickled as usual; pickle then takes that one and drops the rest.
        """
        if variable in self._laid_out or variable.owner is None:
            return NotImplemented
        nodes = self._new_nodes(variable.owner)
        self._laid_out.update(output for node in nodes for output in node.outputs)
        return keep_last, ([node.outputs[0] for node in nodes],)

    def _new_nodes(self, last: Apply) -> list[Apply]:
        """Nodes that come before one and were not pickled yet, each after those it needs."""
        ordered: list[Apply] = []
        met: set[Apply] = set()
        waiting = [(last, False)]
        while waiting:
            node, is_next = waiting.pop()
            if is_next:
                ordered.append(node)
            elif node not in met and node.outputs[0] not in self._laid_out:
                met.add(node)
                waiting.append((node, True))
                waiting += [(x.owner, False) for x in node.inputs if x.owner is not None]
        return ordered

    def _notice(self, obj: Any) -> None:
        words = f"{obj.__module__}.{obj.__qualname__}"
        if "<" in obj.__qualname__:
            code = getattr(obj, "__code__", None)
            place = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
            self.local_names.append(words + place)
        elif obj.__module__ == "__main__":
            self.main_names.append(words)


def keep_last(variables: list[Variable]) -> Variable:
    """Give the last of some variables, when they are unpickled.

    Parameters
    ----------
    variables : list of Variable
        At least one.

    Returns
    -------
    Variable
    """
    return variables[-1]


def stored_array(name: str) -> numpy.ndarray:
    """Stand for the array that an archive holds under a name.

    A pickle calls this; `ArrayUnpickler` puts its own method in its place.

    Parameters
    ----------
    name : str
        Of the array.

    Raises
    ------
    pickle.UnpicklingError
        When another unpickler calls it.
    """
    raise pickle.UnpicklingError(
        f"the array {name!r} is in the archive, not in the pickle; use `bricks.serialization.load`."
    )


class _Stored:
    """Stands for an array that the archive holds under a name."""

    def __init__(self, name: str):
        self.name = name

    def __reduce__(self) -> Any:
        return stored_array, (self.name,)


def make_container(
    class_: type,
    type_: Any,
    storage_class: type,
    value: Any,
    readonly: bool,
    strict: bool,
    allow_downcast: bool | None,
    name: str | None,
) -> Container:
    """Make the container of a shared variable, when it is unpickled.

    Parameters
    ----------
    class_ : type
        Of the container.
    type_ : aesara Type
        Of the variable.
    storage_class : type
        `list`, or a list of one that is made of a value and a name.
    value : array
        The value of the variable.
    readonly, strict : bool
        Whether the value cannot be set, and whether only values of exactly the type can.
    allow_downcast : bool or None
        Whether values of a wider dtype can be set; None: Python's floats only.
    name : str or None
        The name of the variable.

    Returns
    -------
    Container
    """
    storage = [value] if storage_class is list else storage_class(value, name)
    options = {"readonly": readonly, "strict": strict, "allow_downcast": allow_downcast}
    return class_(type_, storage, name=name, **options)


class ArrayUnpickler(pickle.Unpickler):
    """Unpickle what `ArrayPickler` pickled. This runs code: only for files that one trusts.

    Parameters
    ----------
    content : bytes
        The pickle.
    archive : Archive
        Where its arrays are.
    """

    def __init__(self, content: bytes, archive: Archive):
        super().__init__(io.BytesIO(content))
        self._archive = archive
        self._arrays: dict[str, numpy.ndarray] = {}

    def stored_array(self, name: str) -> numpy.ndarray:
        """Give the array of a name, the same one each time.

        Parameters
        ----------
        name : str
            Its name in the archive.

        Returns
        -------
        array
        """
        if name not in self._arrays:
            self._arrays[name] = self._archive[name]
        return self._arrays[name]

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Find a class or function, also one that has moved since."""
        if (module_name, global_name) == (__name__, stored_array.__name__):
            return self.stored_array
        path = f"{module_name}.{global_name}"
        for other in ("numpy.core.", "numpy._core."):
            if module_name.startswith(other):
                module_name = _NUMPY_CORE + module_name.removeprefix(other)
        if path in MOVED:
            module_name, _, global_name = MOVED[path].rpartition(".")
        try:
            return super().find_class(module_name, global_name)
        except (AttributeError, ImportError) as error:
            raise pickle.UnpicklingError(self._missing(path, module_name)) from error

    def _missing(self, path: str, module_name: str) -> str:
        words = f"{self._archive.path} needs {path}, which is not there now"
        if module_name == "__main__":
            words += (
                ": it was defined in the script that wrote the checkpoint. Run that script, which "
                "builds its main loop, and let it restore the state by name"
            )
        else:
            words += (
                ". If it has moved, name its new place in `bricks.pickling.MOVED`; or build the "
                "main loop anew and restore the state by name"
            )
        return words + f" (`main_loop.restore({self._archive.path!r})`): this unpickles nothing."


def pickle_into(store: ArrayStore, member: str, obj: Any, protocol: int = PROTOCOL) -> list[str]:
    """Pickle an object as a member of an archive, its arrays beside it.

    Parameters
    ----------
    store : ArrayStore
        Of the archive.
    member : str
        Name of the member.
    obj : object
        What to pickle.
    protocol : int
        Of the pickle, at least 2.

    Returns
    -------
    list of str
        The classes and functions of ``__main__`` that the pickle needs.

    Raises
    ------
    NotPicklable
        If something in the object cannot be pickled; the member is not written then.
    """
    file = io.BytesIO()
    pickler = ArrayPickler(file, store, protocol)
    try:
        with _deep():
            pickler.dump(obj)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        inside = f" It refers to {', '.join(pickler.local_names)}." if pickler.local_names else ""
        raise NotPicklable(
            f"{type(obj).__name__} cannot be pickled: {error}.{inside} Only classes and functions "
            "at the top of a module can be; move it there."
        ) from error
    store.writer.add_member(member, file.getvalue())
    return sorted(set(pickler.main_names))


def unpickle_from(archive: Archive, member: str) -> Any:
    """Unpickle a member of an archive, which runs the code that it names.

    Parameters
    ----------
    archive : Archive
        Open.
    member : str
        Name of the member.

    Returns
    -------
    object
    """
    content = archive.member(member)
    with _deep():
        return ArrayUnpickler(content, archive).load()


def _deep() -> AbstractContextManager:
    """Let graphs be pickled, which nest deeper than Python expects."""
    return change_recursion_limit(max(sys.getrecursionlimit(), config.recursion_limit))
