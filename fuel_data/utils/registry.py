"""Finding converters and downloaders, the built-in ones and those of the user's modules."""

import argparse
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fuel_data.utils.digests import digest
from fuel_data.utils.parsers import Parser
from fuel_data.utils.tracebacks import describe_in_their_code

logger = logging.getLogger(__name__)


def registered(
    built_in: Iterable[tuple[str, Callable]], extra_modules: Iterable[str], attribute: str
) -> dict[str, Callable[[Any], Callable]]:
    """Collect what can be asked for by name.

    Parameters
    ----------
    built_in : iterable of (name, fill_subparser)
        What comes with this package.
    extra_modules : iterable of str
        Names of modules to import, or of files that end in ``.py``.
    attribute : str
        ``'all_converters'`` or ``'all_downloaders'``: the list of ``(name, fill_subparser)`` in
        each module. One without it gives its classes that are of this `kind` and have a `name`.
        The entry points of installed packages are in the group ``fuel_data.converters`` or
        ``fuel_data.downloaders``, each such a class.

    Returns
    -------
    dict
        Name → its function `fill_subparser`.

    Raises
    ------
    ValueError
        If a module cannot be imported, has nothing to give, or uses a name a second time.
    """
    kind = attribute.removeprefix("all_")
    found = dict(built_in)
    for module_name in extra_modules:
        where = f"The module {module_name!r} in the setting extra_{kind}"
        for name, fill_subparser in _entries(where, module_name, attribute):
            if name in found:
                raise ValueError(
                    f"The module {module_name!r} names {name!r} in `{attribute}`, which is taken."
                )
            found[name] = fill_subparser
    for point in importlib.metadata.entry_points(group=f"fuel_data.{kind}"):
        try:
            class_ = point.load()
            # What the user's settings name, and what comes with this package, goes first.
            found.setdefault(class_.name, class_.fill_subparser)
        except Exception as error:
            # A package that is broken is no reason not to convert MNIST.
            logger.warning("the entry point %s of fuel_data.%s is left out: %s", point, kind, error)
    return found


def _entries(where: str, module_name: str, attribute: str) -> Iterable[tuple[str, Callable]]:
    try:
        module = _import(module_name)
    except Exception as error:
        shown = describe_in_their_code(error)
        reason = f" {error}" if shown is None else f"\n{shown}"
        raise ValueError(f"{where} must be importable:{reason}") from error
    if hasattr(module, attribute):
        entries = getattr(module, attribute)
        if not isinstance(entries, (list, tuple)) or not all(map(_is_entry, entries)):
            raise ValueError(
                f"{where}: `{attribute}` must be a list of (name, fill_subparser), a text and a "
                f"function; got {entries!r}."
            )
        return entries
    kind = attribute.removeprefix("all_")
    classes: list[Any] = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and getattr(value, "kind", None) == kind
        and hasattr(value, "name")
    ]
    if not classes:
        base = kind.removesuffix("s").capitalize()
        raise ValueError(
            f"{where} must have a class with {base} as its base and a `name`, or a list "
            f"`{attribute}`; it has neither."
        )
    return [(class_.name, class_.fill_subparser) for class_ in classes]


def _is_entry(entry: Any) -> bool:
    is_pair = isinstance(entry, (list, tuple)) and len(entry) == 2
    return is_pair and isinstance(entry[0], str) and callable(entry[1])


def _import(module_name: str) -> Any:
    if not module_name.endswith(".py"):
        return importlib.import_module(module_name)
    path = os.path.abspath(os.path.expandvars(os.path.expanduser(module_name)))
    stem = os.path.basename(path).removesuffix(".py")
    # Not under its own name, which another module may have.
    name = f"_extra_{stem}_{digest(path)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def command_parser(
    program: str,
    description: str,
    epilog: str,
    commands: Mapping[str, Callable[[Any], Callable]],
    add_common_arguments: Callable[[argparse.ArgumentParser], None],
) -> Parser:
    """Make the parser of a program whose first argument is the name of a data set.

    Parameters
    ----------
    program : str
        Its name, as in ``fuel-convert``.
    description, epilog : str
        What its help says before and after the arguments.
    commands : mapping of str to function
        From `registered`.
    add_common_arguments : function
        Adds the arguments that all have to a parser.

    Returns
    -------
    Parser
        It gives ``_name``, the name, and ``func``, what `fill_subparser` returned, or has set as
        this default.

    Raises
    ------
    ValueError
        If a `fill_subparser` fails or gives no function.
    """
    description += f" `{program} NAME --help` says what each takes."
    parser = Parser(prog=program, description=description, epilog=epilog)
    subparsers = parser.add_subparsers(metavar="NAME", dest="_name", required=True)
    verb = program.rpartition("-")[2]
    for name, fill_subparser in sorted(commands.items()):
        subparser = subparsers.add_parser(
            name,
            help=f"{verb} {name}",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_common_arguments(subparser)
        subparser.set_defaults(func=_function(name, fill_subparser, subparser))
    return parser


def _function(
    who: str, fill_subparser: Callable[[Any], Any], subparser: argparse.ArgumentParser
) -> Callable:
    try:
        function = fill_subparser(subparser) or subparser.get_default("func")
    except Exception as error:
        shown = describe_in_their_code(error)
        if shown is None:
            raise
        raise ValueError(f"{who}: its `fill_subparser` failed:\n{shown}") from error
    if not callable(function):
        raise ValueError(
            f"{who}: its `fill_subparser` must return the function that does the work; got "
            f"{function!r}."
        )
    return function
