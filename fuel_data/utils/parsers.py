"""A parser of command lines that drops nothing in silence and names the way out."""

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

from fuel_data.utils.names import nearest_name


class Parser(argparse.ArgumentParser):
    """A parser that takes an option once, where argparse would forget all but the last.

    An option with another action, such as ``append``, may be given several times as before. What
    is not known is refused with the name that is nearest to it, by the parser of the subcommand
    that it was given to. The parsers of subcommands are of this class, too.

    Parameters
    ----------
    *arguments, **options
        As for `argparse.ArgumentParser`.

    Examples
    --------
    >>> parser = Parser(prog="cut")
    >>> action = parser.add_argument("--train", nargs="+")
    >>> parser.parse_args(["--train", "a", "b"]).train
    ['a', 'b']
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._commands: Any = None
        self.given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)

    def add_subparsers(self, **options: Any) -> Any:
        """Let the first argument name a subcommand, as in `argparse.ArgumentParser`.

        Parameters
        ----------
        **options
            As for `argparse.ArgumentParser`.

        Returns
        -------
        object
            Its ``add_parser`` makes the parser of a subcommand.
        """
        self._commands = super().add_subparsers(**options)
        return self._commands

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, and end the process with status 2 where one is not known.

        Parameters
        ----------
        args : sequence of str, optional
            The arguments, by default those of the process.
        namespace : argparse.Namespace, optional
            Where the values are put.

        Returns
        -------
        tuple of (argparse.Namespace, list of str)
            The values, and nothing.
        """
        args = list(sys.argv[1:] if args is None else args)
        self.given = set()
        if self._commands is not None:
            self._check_first(args)
        values, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{self._way_out(unknown)}")
        return values, unknown

    def _check_first(self, args: list[str]) -> None:
        """Refuse what is no name of a subcommand: argparse would take a later value for one."""
        name = self._commands.metavar or "COMMAND"
        if not args and self._commands.required:
            self.error(f"{name} is missing.{nearest_name('', self._commands.choices)}")
        option = args[0].partition("=")[0] if args else ""
        if option.startswith("-") and not any(o.startswith(option) for o in self._options()):
            self.error(f"{option} stands behind {name}, as in `{self.prog} {name} {option}`.")

    def _options(self) -> list[str]:
        shown = [action for action in self._actions if action.help != argparse.SUPPRESS]
        return [option for action in shown for option in action.option_strings]

    def _way_out(self, unknown: list[str]) -> str:
        for one in unknown:
            if one.startswith("-"):
                options = [option for option in self._options() if option.startswith("--")]
                return nearest_name(one.partition("=")[0], options)
        places = [str(a.metavar or a.dest) for a in self._actions if not a.option_strings]
        besides = f"Besides options it takes {', '.join(places)}" if places else "It takes options"
        return f" {besides} only."

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            way_out = nearest_name(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"{value!r} is not known.{way_out}")


def positive(number: type) -> Callable[[str], Any]:
    """Make a type of arguments that are numbers of more than 0.

    Parameters
    ----------
    number : {int, float}
        Which numbers.

    Returns
    -------
    function
        To be the ``type`` of an argument.

    Examples
    --------
    >>> positive(int)("3")
    3
    """
    kind = "a whole number of at least 1" if number is int else "a finite number of more than 0"

    def parse(text: str) -> Any:
        try:
            value = number(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be {kind}; got {text!r}.")
        return value

    return parse


class _StoreOnce(argparse.Action):
    """Store a value, as ``action='store'`` does, the first time."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if option is not None and self.dest in parser.given:
            how = "all its values at once" if self.nargs in ("+", "*") else "it once"
            raise argparse.ArgumentError(self, f"it is given twice; give {how}.")
        parser.given.add(self.dest)
        setattr(namespace, self.dest, values)
