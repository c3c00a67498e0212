"""Find bricks and parameters by path: ``/mlp/linear_0.W``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from bricks.base import BRICK_DELIMITER, Brick
from bricks.utils.plain import pack

__all__ = ["Path", "Selector"]

#: What stands between the path of a brick and the name of a parameter.
PARAMETER_DELIMITER = "."


class Path:
    """The place of a brick or a parameter in a tree of bricks.

    Parameters
    ----------
    nodes : iterable of Path.BrickName or Path.ParameterName
        The names from the top down; only the last may be a parameter's.
    """

    class BrickName(str):
        """The name of a brick in a path."""

        __slots__ = ()

        def part(self) -> str:
            """Return the name with what stands before it in a path."""
            return BRICK_DELIMITER + self

    class ParameterName(str):
        """The name of a parameter in a path."""

        __slots__ = ()

        def part(self) -> str:
            """Return the name with what stands before it in a path."""
            return PARAMETER_DELIMITER + self

    def __init__(self, nodes: Iterable[Any]) -> None:
        self.nodes = tuple(nodes)

    @classmethod
    def parse(cls, string: str) -> Path:
        """Return the path that a text stands for.

        Parameters
        ----------
        string : str
            Such as ``'/mlp/linear_0.W'``, ``'/mlp'`` or ``'.W'``.

        Returns
        -------
        Path
            The path.

        Raises
        ------
        ValueError
            If the text is no path.
        """
        bricks, dot, parameter = string.partition(PARAMETER_DELIMITER)
        names = bricks.split(BRICK_DELIMITER)
        is_bad = PARAMETER_DELIMITER in parameter or BRICK_DELIMITER in parameter
        if not string or names[0] or not all(names[1:]) or (dot and not parameter) or is_bad:
            raise ValueError(
                f"Path: {string!r} is no path. Write '/brick/child', '/brick/child.parameter' or "
                "'.parameter', with the whole names from the top brick down."
            )
        nodes: list[Any] = [cls.BrickName(name) for name in names[1:]]
        return cls(nodes + ([cls.ParameterName(parameter)] if parameter else []))

    def __str__(self) -> str:
        return "".join(node.part() for node in self.nodes)

    def __repr__(self) -> str:
        return f"Path.parse({str(self)!r})"

    def __add__(self, other: Path) -> Path:
        return Path(self.nodes + other.nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Selector:
    """Some bricks, and what stands below them.

    Parameters
    ----------
    bricks : Brick or sequence of Brick
        The bricks.
    """

    def __init__(self, bricks: Brick | Sequence[Brick]) -> None:
        self.bricks: list[Brick] = pack(bricks) if not isinstance(bricks, Brick) else [bricks]

    def select(self, path: Path | str) -> Any:
        """Return what stands at a path.

        Parameters
        ----------
        path : Path or str
            The path. The first name is one of the bricks themselves.

        Returns
        -------
        Selector or list of SharedVariable
            The bricks there, or the parameters if the path ends with a parameter's name: that of
            the brick itself and those of the same name of all bricks below it.
        """
        nodes = (path if isinstance(path, Path) else Path.parse(path)).nodes
        level = list(self.bricks)
        for depth, node in enumerate(nodes):
            if isinstance(node, Path.ParameterName):
                below = Selector(level)._all_parameters()
                return [parameter for _, parameter in below if parameter.name == node]
            if depth:
                level = [child for brick in level for child in brick.children]
            level = _unique(brick for brick in level if brick.name == node)
        return Selector(level)

    def get_parameters(self, parameter_name: str | None = None) -> OrderedDict:
        """Return the parameters of the bricks and of all bricks below them.

        Parameters
        ----------
        parameter_name : str, optional
            Only those of this name.

        Returns
        -------
        OrderedDict of str to SharedVariable
            By path. A brick with several parents appears once, under its first.

        Raises
        ------
        ValueError
            If two parameters have the same path.
        """
        found: OrderedDict = OrderedDict()
        for path, parameter in self._all_parameters():
            if parameter_name is not None and parameter.name != parameter_name:
                continue
            if found.setdefault(path, parameter) is not parameter:
                raise ValueError(collision(path))
        return found

    def _all_parameters(self) -> list[tuple[str, Any]]:
        """Return path and parameter for all bricks, parents before children, each once."""
        pairs, seen, stack = [], set(), list(self.bricks)[::-1]
        while stack:
            brick = stack.pop()
            if id(brick) in seen:
                continue
            seen.add(id(brick))
            own = [one for one in brick.parameters if one is not None]
            pairs += [(brick.get_hierarchical_name(one), one) for one in own]
            stack.extend(list(brick.children)[::-1])
        return pairs


def collision(path: str) -> str:
    """Return the message about two parameters of one path."""
    return (
        f"two parameters are called {path}. Give the bricks (or, in one brick, the parameters) "
        "names of their own, for instance `Linear(…, name='linear_2')`."
    )


def _unique(bricks: Iterable[Brick]) -> list[Brick]:
    """Return bricks in order, each once."""
    return list({id(brick): brick for brick in bricks}.values())
