"""Finding converters and downloaders, the built-in ones and those of the user's modules."""

import argparse
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def registered(
    built_in: Iterable[tuple[str, Callable]], extra_modules: Iterable[str], attribute: str
) -> dict[str, Callable[[Any], Callable]]:
    """Collect what can be asked for by name.

    Parameters
    ----------
    built_in : iterable of (name, fill_subparser)
        What comes with this package.
    extra_modules : iterable of str
        Names of modules to import.
    attribute : str
        The list of ``(name, fill_subparser)`` in each module.

    Returns
    -------
    dict
        Name → its function `fill_subparser`.

    Raises
    ------
    ValueError
        If a module cannot be imported, has no such list, or uses a name a second time.
    """
    found = dict(built_in)
    for module_name in extra_modules:
        try:
            entries = getattr(importlib.import_module(module_name), attribute)
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"The module {module_name!r} in the setting extra_{attribute.removeprefix('all_')} "
                f"must be importable and have a list `{attribute}`: {error}"
            ) from error
        for name, fill_subparser in entries:
            if name in found:
                raise ValueError(
                    f"The module {module_name!r} names {name!r} in `{attribute}`, which is taken."
                )
            found[name] = fill_subparser
    return found


def command_parser(
    program: str,
    description: str,
    epilog: str,
    commands: Mapping[str, Callable[[Any], Callable]],
    add_common_arguments: Callable[[argparse.ArgumentParser], None],
) -> argparse.ArgumentParser:
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
    argparse.ArgumentParser
        It gives ``_name``, the name, and ``func``, what `fill_subparser` returned.
    """
    parser = argparse.ArgumentParser(prog=program, description=description, epilog=epilog)
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
        subparser.set_defaults(func=fill_subparser(subparser))
    return parser
