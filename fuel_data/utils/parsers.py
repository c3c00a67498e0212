"""A parser of command lines that refuses what argparse would drop in silence."""

import argparse
from typing import Any


class Parser(argparse.ArgumentParser):
    """A parser that takes an option once, where argparse would forget all but the last.

    An option with another action, such as ``append``, may be given several times as before. The
    parsers of subcommands are of this class, too.

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
        self.given: set[str] = set()
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse what is known, as in `argparse.ArgumentParser`.

        Parameters
        ----------
        args : sequence of str, optional
            The arguments, by default those of the process.
        namespace : argparse.Namespace, optional
            Where the values are put.

        Returns
        -------
        tuple of (argparse.Namespace, list of str)
            The values, and what is not known.
        """
        self.given = set()
        return super().parse_known_args(args, namespace)


class _StoreOnce(argparse.Action):
    """Store a value, as ``action='store'`` does, the first time."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if option is not None and self.dest in parser.given:
            how = "all its values at once" if self.nargs in ("+", "*") else "it once"
            raise argparse.ArgumentError(self, f"it is given twice; give {how}.")
        parser.given.add(self.dest)
        setattr(namespace, self.dest, values)
