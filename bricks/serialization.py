"""Save a main loop, or anything else, to one file, and get all or a part of it back.

A checkpoint is an archive (see `bricks.archive`) that holds the state of a main loop by name (see
`bricks.state`) and, beside it, the main loop itself as a pickle (see `bricks.pickling`)::

    /mlp/linear_0.W.npy ...      the parameters, by path
    persistent/... algorithm/... the other arrays of the state
    log.json extensions.json stream.json    the rest of the state, its arrays beside it
    main_loop.pkl model.pkl      the pickles, which `load` and `bricks.load` read
    manifest.json                versions, device, command line, roles, digests

`load_parameters` and `load_state` unpickle nothing and may be used on any file. `load` and
`continue_training` run the code that a pickle names: only for files that one trusts.
"""

import os
import tarfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

import numpy
from aesara.compile.sharedvalue import SharedVariable

from bricks.archive import Archive, ArchiveWriter, DamagedArchive, ForeignFile, Target
from bricks.pickling import PROTOCOL, ArrayStore, NotPicklable, pickle_into, unpickle_from
from bricks.provenance import describe, expected_steps, lowered_steps, warn_of_differences
from bricks.state import (
    PLAIN_PARTS,
    check_not_lost,
    named_variables,
    parameter_path,
    plain_state,
)
from fuel_data.state import join_arrays, split_arrays
from fuel_data.utils.files import atomic_write
from fuel_data.utils.names import nearest_name

#: Blocks' name for the protocol of the pickles in a checkpoint.
DEFAULT_PROTOCOL = PROTOCOL

MAIN_LOOP = "main_loop"
MODEL = "model"
OBJECT = "object"
_PICKLE = ".pkl"

Path = str | os.PathLike[str]


def dump(
    object_: Any,
    file_: Target,
    parameters: Iterable[SharedVariable] | None = None,
    use_cpickle: bool = False,
    protocol: int = PROTOCOL,
    *,
    save_main_loop: bool = True,
) -> None:
    """Save an object to a file, written beside its target and renamed.

    Parameters
    ----------
    object_ : object
        A main loop, which is saved with its whole state, or anything that can be pickled.
    file_ : path or binary file
        The file. If one is there, it is replaced when the new one is whole. An open file is
        written to as it is, without that safety.
    parameters : iterable of shared variable, optional
        Variables whose values are stored by path. A main loop's own are stored in any case.
    use_cpickle : bool
        As in Blocks. Both values mean the same here.
    protocol : int
        Of the pickle.
    save_main_loop : bool
        Whether a main loop is also pickled, so that `load` and `continue_training` work. Its
        state is saved in any case.

    Raises
    ------
    DonatedStateLost
        If the values of a main loop were lost in a failed step.
    ValueError
        If a main loop has none of `parameters`, or two have one name.
    NotPicklable
        If the object is no main loop and cannot be pickled.
    OSError
        If the disk is full.

    Warns
    -----
    UserWarning
        If a main loop cannot be pickled, or only for the script that wrote it.
    """
    dump_and_add_to_dump(
        object_, file_, parameters, None, use_cpickle, protocol, save_main_loop=save_main_loop
    )


def dump_and_add_to_dump(
    object_: Any,
    file_: Target,
    parameters: Iterable[SharedVariable] | None = None,
    to_add: Mapping[str, Any] | None = None,
    use_cpickle: bool = False,
    protocol: int = PROTOCOL,
    *,
    save_main_loop: bool = True,
) -> None:
    """Save an object, and others under names of their own beside it, to one file.

    Parameters
    ----------
    object_ : object
        A main loop, or anything that can be pickled.
    file_ : path or binary file
        The file, replaced when the new one is whole; an open file is written to as it is.
    parameters : iterable of shared variable, optional
        Variables whose values are stored by path.
    to_add : mapping of str to object, optional
        What else to pickle; ``load(file_, name)`` reads one of them.
    use_cpickle : bool
        As in Blocks. Both values mean the same here.
    protocol : int
        Of the pickles.
    save_main_loop : bool
        Whether a main loop is also pickled, beside its state.

    Raises
    ------
    DonatedStateLost, ValueError, NotPicklable, OSError
        As for `dump`.
    """
    main_loop = _is_main_loop(object_)
    if main_loop:
        check_not_lost(object_)
        _check_known(object_, parameters)
    with ArchiveWriter(file_, describe()) as writer:
        if main_loop:
            store = _write_main_loop(writer, object_, protocol, save_main_loop)
        else:
            store = _write_object(writer, object_, parameters, protocol)
        for name, other in (to_add or {}).items():
            _warn_of_main(writer, name, pickle_into(store, name + _PICKLE, other, protocol))


def add_to_dump(
    object_: Any,
    file_: Path,
    name: str,
    parameters: Iterable[SharedVariable] | None = None,
    use_cpickle: bool = False,
    protocol: int = PROTOCOL,
) -> None:
    """Add an object to a file that `dump` wrote, under a name of its own.

    The file is written anew and takes the place of the old one when it is whole.
    `dump_and_add_to_dump` writes both in one pass.

    Parameters
    ----------
    object_ : object
        What to pickle.
    file_ : path
        The file.
    name : str
        For ``load(file_, name)``; new in this file.
    parameters : iterable of shared variable, optional
        Variables that the object refers to and whose values the file holds by path.
    use_cpickle : bool
        As in Blocks. Both values mean the same here.
    protocol : int
        Of the pickle.

    Raises
    ------
    ValueError
        If the name is taken.
    NotPicklable
        If the object cannot be pickled.
    """
    with Archive(file_) as archive:
        manifest = {k: v for k, v in archive.manifest.items() if k not in ("format", "members")}
        with ArchiveWriter(file_, manifest) as writer:
            for array in archive.names():
                writer.add_array(array, archive[array])
            for member in archive.member_names():
                writer.add_member(member, archive.member(member))
            store = ArrayStore(writer, _by_path(parameters), prefix=f"pickled {name}")
            _warn_of_main(writer, name, pickle_into(store, name + _PICKLE, object_, protocol))


def secure_dump(
    object_: Any, path: Path, dump_function: Callable[..., None] = dump, **kwargs: Any
) -> None:
    """Save an object so that a failure leaves the previous file, which `dump` does by itself.

    Parameters
    ----------
    object_ : object
        What to save.
    path : path
        The file.
    dump_function : callable
        `dump`, or a function that writes an object to an open binary file.
    **kwargs
        For `dump_function`, which refuses what it does not know.
    """
    if dump_function in (dump, dump_and_add_to_dump):
        dump_function(object_, path, **kwargs)
        return
    with atomic_write(path) as file:
        dump_function(object_, file, **kwargs)


def load(file_: Target, name: str | None = None, use_cpickle: bool = False) -> Any:
    """Unpickle a main loop or another object, which runs the code that the pickle names.

    Parameters
    ----------
    file_ : path or binary file
        A file that `dump` wrote and that one trusts.
    name : str, optional
        The name of an object that was added; the object that was dumped by default.
    use_cpickle : bool
        As in Blocks. Both values mean the same here.

    Returns
    -------
    object
        The main loop or the object.

    Raises
    ------
    DamagedArchive, ForeignFile
        If the file cannot be used. Nothing is unpickled then.
    KeyError
        If nothing of this name is in it.
    pickle.UnpicklingError
        If a class is not where it was.

    Warns
    -----
    UserWarning
        If a main loop was saved under other versions or on another device.
    """
    with Archive(file_) as archive:
        names = [n[: -len(_PICKLE)] for n in archive.member_names() if n.endswith(_PICKLE)]
        if name in (None, "_pkl"):
            name = _main_name(archive, names)
        elif name not in names:
            raise KeyError(f"{archive.path} holds no {name!r}.{nearest_name(str(name), names)}")
        loaded = unpickle_from(archive, name + _PICKLE)
        if name == MAIN_LOOP:
            warn_of_differences(archive.path, archive.manifest)
            loaded.expected_steps = expected_steps(archive.manifest)
    return loaded


def load_parameters(file_: Target) -> dict[str, numpy.ndarray]:
    """Read the parameters of a checkpoint, unpickling nothing.

    Parameters
    ----------
    file_ : path or binary file
        A file that `dump` wrote, or a tar archive that Blocks wrote.

    Returns
    -------
    dict of str to array
        By path, as ``/mlp/linear_0.W``.

    Raises
    ------
    DamagedArchive, ForeignFile
        If the file cannot be used.
    """
    try:
        archive = Archive(file_)
    except ForeignFile:
        if hasattr(file_, "seek"):
            file_.seek(0)
        if not tarfile.is_tarfile(file_):
            raise
        return _parameters_of_blocks(file_)
    with archive:
        places = archive.manifest.get("state", {}).get("parameters", {})
        return {name: archive[place] for name, place in places.items()}


def load_state(file_: Target) -> dict[str, Any]:
    """Read the state of a main loop from a checkpoint, unpickling nothing.

    Parameters
    ----------
    file_ : path or binary file
        A file that `dump` wrote.

    Returns
    -------
    dict
        The parts, as `bricks.state.get_state` returned them.

    Raises
    ------
    DamagedArchive
        If the file is damaged.
    ForeignFile
        If it is none of ours, or holds no main loop.

    Warns
    -----
    UserWarning
        If it was saved under other versions or on another device.
    """
    with Archive(file_) as archive:
        if archive.manifest.get("kind") != MAIN_LOOP:
            raise ForeignFile(
                f"{archive.path} holds no main loop but {archive.manifest.get('kind', 'arrays')}; "
                "`load_parameters` reads its parameters, `load` the object."
            )
        state: dict[str, Any] = {
            part: {name: archive[place] for name, place in places.items()}
            for part, places in archive.manifest["state"].items()
        }
        for part in PLAIN_PARTS:
            arrays = _Prefixed(archive, f"{part}/")
            state[part] = join_arrays(archive.member(f"{part}.json").decode(), arrays)
        warn_of_differences(archive.path, archive.manifest)
    return state


def continue_training(path: Path) -> None:
    """Load a main loop and run it, from the batch at which it was saved.

    Parameters
    ----------
    path : path
        A checkpoint that one trusts.

    Raises
    ------
    DamagedArchive, ForeignFile
        If the file cannot be used.
    KeyError
        If it holds no pickled main loop.
    """
    load(path).run()


def _check_known(main_loop: Any, parameters: Iterable[SharedVariable] | None) -> None:
    """Refuse parameters that a main loop does not have, and so would not save."""
    known = {v for variables in named_variables(main_loop).values() for v in variables.values()}
    for parameter in parameters or ():
        if parameter not in known:
            raise ValueError(
                f"{parameter} of `parameters` belongs neither to the model of the main loop nor to "
                "its algorithm. Use it in the model, or save it beside the main loop: "
                "`dump_and_add_to_dump(main_loop, path, to_add={'name': variable})`."
            )


def _write_object(
    writer: ArchiveWriter,
    object_: Any,
    parameters: Iterable[SharedVariable] | None,
    protocol: int,
) -> ArrayStore:
    variables = _by_path(parameters)
    store = ArrayStore(writer, variables)
    _write_variables(writer, {"parameters": variables})
    writer.manifest["kind"] = OBJECT
    _warn_of_main(writer, OBJECT, pickle_into(store, OBJECT + _PICKLE, object_, protocol))
    return store


def _write_main_loop(
    writer: ArchiveWriter, main_loop: Any, protocol: int, save_main_loop: bool
) -> ArrayStore:
    variables = named_variables(main_loop)
    places = _write_variables(writer, variables)
    for part, plain in plain_state(main_loop).items():
        text, arrays = split_arrays(plain)
        writer.add_member(f"{part}.json", text.encode())
        for key, array in arrays.items():
            writer.add_array(f"{part}/{key}", array)
    writer.manifest["kind"] = MAIN_LOOP
    writer.manifest["script_values"] = dict(getattr(main_loop, "script_values", {}))
    writer.manifest["lowered_steps"] = lowered_steps(main_loop.algorithm)
    store = ArrayStore(writer, places)
    if main_loop.model is not None:
        _try_to_pickle(writer, store, MODEL, main_loop.model, protocol)
    if save_main_loop:
        _try_to_pickle(writer, store, MAIN_LOOP, main_loop, protocol)
    return store


def _write_variables(
    writer: ArchiveWriter, parts: Mapping[str, Mapping[str, SharedVariable]]
) -> dict[str, SharedVariable]:
    """Write the values of variables, one after the other, and note where they are."""
    state: dict[str, dict[str, str]] = {}
    roles: dict[str, list[str]] = {}
    variables = {}
    for part, named in parts.items():
        state[part] = {}
        for name, variable in named.items():
            place = f"persistent/{name.lstrip('/')}" if part == "persistent" else name
            writer.add_array(place, variable.get_value(borrow=True))
            state[part][name] = place
            roles[name] = [repr(role) for role in getattr(variable.tag, "roles", [])]
            variables[place] = variable
    writer.manifest |= {"state": state, "roles": roles}
    return variables


def _try_to_pickle(
    writer: ArchiveWriter, store: ArrayStore, name: str, obj: Any, protocol: int
) -> None:
    """Pickle a part of a main loop; if that fails, the rest of the checkpoint is still good."""
    try:
        _warn_of_main(writer, name, pickle_into(store, name + _PICKLE, obj, protocol))
    except NotPicklable as error:
        writer.manifest.setdefault("not_pickled", {})[name] = str(error)
        warnings.warn(
            f"{writer.path} is written without the pickled {name}: {error} The state is there by "
            "name: run the script again and restore it (`main_loop.restore(path)`).",
            stacklevel=5,
        )


def _warn_of_main(writer: ArchiveWriter, name: str, main_names: list[str]) -> None:
    if main_names:
        warnings.warn(
            f"the pickled {name} in {writer.path} needs {', '.join(main_names)}, defined in the "
            "script that is running, so only that script can load it. Move them to a module that "
            "the script imports, or run the script again and restore the state by name "
            "(`main_loop.restore(path)`), which works without the pickle.",
            stacklevel=5,
        )


def _main_name(archive: Archive, names: list[str]) -> str:
    for name in (MAIN_LOOP, OBJECT):
        if name in names:
            return name
    reason = archive.manifest.get("not_pickled", {}).get(MAIN_LOOP, "it was saved without one.")
    raise KeyError(
        f"{archive.path} holds no pickled main loop: {reason} Build the main loop by its script "
        "and restore the state by name (`main_loop.restore(path)`)."
    )


def _by_path(parameters: Iterable[SharedVariable] | None) -> dict[str, SharedVariable]:
    named: OrderedDict[str, SharedVariable] = OrderedDict()
    for parameter in parameters or ():
        name = parameter_path(parameter)
        if name in named and named[name] is not parameter:
            raise ValueError(f"two parameters are called {name!r}; give them names of their own.")
        named[name] = parameter
    return named


def _is_main_loop(object_: Any) -> bool:
    parts = ("algorithm", "data_stream", "log", "extensions", "model", "epoch_iterator")
    return all(hasattr(object_, part) for part in parts)


def _parameters_of_blocks(file_: Target) -> dict[str, numpy.ndarray]:
    path = file_ if isinstance(file_, str | os.PathLike) else None
    fileobj: Any = None if path is not None else file_
    try:
        with tarfile.open(path, fileobj=fileobj) as tar:
            member: IO[bytes] | None = tar.extractfile("_parameters")
            if member is None:
                raise KeyError("_parameters is no file")
            with numpy.load(member, allow_pickle=False) as arrays:
                return {name.replace("|", "/"): arrays[name] for name in arrays.files}
    except KeyError as error:
        raise ForeignFile(
            f"{path or file_} is a tar archive without parameters; expected one that Blocks' "
            "`dump` wrote with `parameters=`, or a checkpoint of firebrick."
        ) from error
    except Exception as error:
        raise DamagedArchive(f"{path or file_} is a damaged archive of Blocks: {error}.") from error


class _Prefixed(Mapping[str, numpy.ndarray]):
    """The arrays of an archive whose names begin in one way, read on demand."""

    def __init__(self, archive: Archive, prefix: str):
        self._archive, self._prefix = archive, prefix

    def __getitem__(self, key: str) -> numpy.ndarray:
        return self._archive[self._prefix + key]

    def __iter__(self) -> Any:
        prefix = self._prefix
        return (n[len(prefix) :] for n in self._archive.names() if n.startswith(prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
