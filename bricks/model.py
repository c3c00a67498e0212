"""A graph whose parameters have names, to be saved, loaded and trained."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Variable

from bricks.base import Brick
from bricks.filter import get_brick
from bricks.graph import ComputationGraph
from bricks.pictures import Picture, draw_bricks, draw_graph
from bricks.roles import PARAMETER, PERSISTENT, has_roles
from bricks.select import collision
from bricks.summary import Summary
from fuel_data.utils.keywords import NamedKeywords
from fuel_data.utils.names import nearest_name

__all__ = ["Model"]

logger = logging.getLogger(__name__)


class Model(NamedKeywords, ComputationGraph):
    """A graph, its top bricks and its parameters by name.

    Parameters
    ----------
    outputs : Variable or iterable of Variable
        The outputs.

    Attributes
    ----------
    top_bricks : list of Brick
        The bricks of the graph that are no other one's children, in the graph's order.

    Raises
    ------
    ValueError
        If two top bricks, or two parameters, would have the same name.
    """

    def __init__(self, outputs: Variable | Iterable[Variable]) -> None:
        super().__init__(outputs)
        self.top_bricks = _find_top_bricks([*self.variables, *self.scan_variables])
        repeated = [
            name
            for name, count in Counter(brick.name for brick in self.top_bricks).items()
            if count > 1
        ]
        if repeated:
            raise ValueError(
                f"Model: several top bricks are called {', '.join(map(repr, repeated))}. Give "
                "each a name of its own, so that their parameters can be told apart."
            )
        self._parameter_dict = _by_name(self.parameters)
        in_graph = [
            shared
            for shared in self.shared_variables
            if has_roles(shared, [PERSISTENT]) and not has_roles(shared, [PARAMETER])
        ]
        self._persistent_dict = _by_name([*in_graph, *_persistent_of_bricks(self.variables)])

    def get_top_bricks(self) -> list[Brick]:
        """Return the bricks of the graph that are no other one's children.

        Returns
        -------
        list of Brick
            In the graph's order: `top_bricks` itself.
        """
        return self.top_bricks

    def get_parameter_dict(self) -> OrderedDict:
        """Return the parameters of the graph by name.

        Returns
        -------
        OrderedDict of str to SharedVariable
            By path (``'/mlp/linear_0.W'``); by their own name if no brick made them. In the order
            of the graph.
        """
        return OrderedDict(self._parameter_dict)

    def get_persistent_dict(self) -> OrderedDict:
        """Return the other shared variables that belong to the model, by name.

        Returns
        -------
        OrderedDict of str to SharedVariable
            Those of role PERSISTENT that are no parameters, such as statistics of a data set, and
            those that the graph's bricks list as their `persistent`, such as the population's
            statistics of a batch normalization, which a graph for training does not use.
        """
        return OrderedDict(self._persistent_dict)

    def get_parameter_values(self) -> OrderedDict:
        """Return the values of the parameters.

        Returns
        -------
        OrderedDict of str to array
            Copies, by name.
        """
        return OrderedDict(
            (name, parameter.get_value()) for name, parameter in self._parameter_dict.items()
        )

    def set_parameter_values(
        self, parameter_values: Mapping[str, Any], ignore: Iterable[str] = ()
    ) -> None:
        """Set the parameters, all of them or none.

        Parameters
        ----------
        parameter_values : mapping of str to array
            Values by name.
        ignore : iterable of str, optional
            Names that may be missing or unknown, and are left alone then; ``'missing'`` and
            ``'unknown'`` allow all of either kind.

        Raises
        ------
        ValueError
            If names are missing or unknown, or shapes differ, with the whole list. Nothing is
            set then.
        """
        allowed = {ignore} if isinstance(ignore, str) else set(ignore)
        known = self._parameter_dict
        absent = [name for name in known if name not in parameter_values]
        problems = [f"missing: {name}" for name in absent if not {"missing", name} & allowed]
        for name, value in parameter_values.items():
            if name in known:
                expected = known[name].get_value(borrow=True).shape
                if numpy.shape(value) != expected:
                    got = numpy.shape(value)
                    problems.append(f"shape of {name}: expected {expected}, got {got}")
            elif not {"unknown", name} & allowed:
                problems.append(f"unknown: {name}.{nearest_name(name, known)}")
        if problems:
            raise ValueError(
                "Model.set_parameter_values: the values do not fit the parameters; nothing was "
                "set. Correct them, or name in `ignore` what may differ.\n  "
                + "\n  ".join(problems)
            )
        for name, value in parameter_values.items():
            if name in known:
                known[name].set_value(numpy.asarray(value, dtype=known[name].dtype))

    def summary(self) -> Summary:
        """Return what the model holds, parameters and statistics, as a table that prints well.

        Returns
        -------
        Summary
            Its `parameters` and `persistent` are rows with path, shape, size, dtype and roles.
        """
        return Summary(self._parameter_dict, self._persistent_dict)

    def draw_bricks(self) -> Picture:
        """Draw the tree of the model's bricks, with the shapes of their parameters.

        Returns
        -------
        Picture
            Notebooks show it; ``picture.save('bricks.svg')`` writes it.
        """
        return draw_bricks(self)

    def draw_graph(self, depth: int | None = None) -> Picture:
        """Draw the applications of bricks that the model's outputs are computed by.

        Parameters
        ----------
        depth : int, optional
            How many levels of bricks to show; see `bricks.pictures.draw_graph`.

        Returns
        -------
        Picture
            Notebooks show it; ``picture.save('graph.svg')`` writes it.
        """
        return draw_graph(self, depth)

    def check_sanity(self, algorithm: Any) -> None:
        """Warn, in the log, if an algorithm trains other parameters than the model has.

        Parameters
        ----------
        algorithm : object
            A training algorithm; nothing is checked if it has no `parameters`.
        """
        trained = getattr(algorithm, "parameters", None)
        if trained is None:
            return
        mine = list(self._parameter_dict.values())
        others = [one for one in trained if one not in mine]
        left_out = [name for name, one in self._parameter_dict.items() if one not in trained]
        if others:
            logger.warning("The algorithm trains what the model does not have: %s", others)
        if left_out:
            logger.warning("The algorithm does not train parameters of the model: %s", left_out)


def _find_top_bricks(variables: Iterable[Variable]) -> list[Brick]:
    """Return the bricks of some variables that are no other one's children."""
    made_by = [get_brick(variable) for variable in variables]
    bricks = list({id(brick): brick for brick in made_by if brick is not None}.values())
    children = {id(child) for brick in bricks for child in brick.children}
    return [brick for brick in bricks if id(brick) not in children]


def _persistent_of_bricks(variables: Iterable[Variable]) -> list[SharedVariable]:
    """Return what the bricks of some variables hold beside their parameters, in order."""
    made_by = [get_brick(variable) for variable in variables]
    bricks = list({id(brick): brick for brick in made_by}.values())
    return [shared for brick in bricks for shared in getattr(brick, "persistent", ())]


def _by_name(shared_variables: Iterable[SharedVariable]) -> OrderedDict:
    """Return shared variables by their path, or by their own name."""
    found: OrderedDict = OrderedDict()
    for shared in shared_variables:
        brick = get_brick(shared)
        name = shared.name if brick is None else brick.get_hierarchical_name(shared)
        if name is None:
            raise ValueError(
                f"Model: {shared!r} of shape {shared.get_value(borrow=True).shape} has no name, so "
                "it could not be saved. Name it, as in `shared_floatx(value, name='scale')`."
            )
        if found.setdefault(name, shared) is not shared:
            raise ValueError(f"Model: {collision(name)}")
    return found
