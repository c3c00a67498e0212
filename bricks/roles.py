"""What a variable is in a graph: a weight, a cost, an input of an application.

A role is an object of a class of its own; the classes form a tree, and a variable of role
``WEIGHT`` is found when one looks for ``PARAMETER``. Roles are kept in ``variable.tag.roles``.
"""

from __future__ import annotations

from collections.abc import Iterable

from aesara.graph.basic import Variable

__all__ = [
    "VariableRole",
    "add_role",
    "has_roles",
    "ALGORITHM_BUFFER",
    "ALGORITHM_HYPERPARAMETER",
    "ALGORITHM_STATE",
    "AUXILIARY",
    "BATCH_NORM_DIVISOR",
    "BATCH_NORM_GRAPH_VARIABLE",
    "BATCH_NORM_MINIBATCH_ESTIMATE",
    "BATCH_NORM_OFFSET",
    "BATCH_NORM_POPULATION_MEAN",
    "BATCH_NORM_POPULATION_STATISTICS",
    "BATCH_NORM_POPULATION_STDEV",
    "BATCH_NORM_SCALE_PARAMETER",
    "BATCH_NORM_SHIFT_PARAMETER",
    "BIAS",
    "COLLECTED",
    "COLLECTOR",
    "COST",
    "DROPOUT",
    "FILTER",
    "INITIAL_STATE",
    "INPUT",
    "OUTPUT",
    "PARAMETER",
    "PERSISTENT",
    "WEIGHT",
]


class VariableRole:
    """The root of all roles. Roles of one class are one role, also after unpickling."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        name = type(self).__name__.removesuffix("Role")
        words = "".join("_" + letter if letter.isupper() else letter for letter in name)
        return words.removeprefix("_").upper()


def add_role(variable: Variable, role: VariableRole) -> None:
    """Give a variable a role, keeping only the most specific one on each line of descent.

    Parameters
    ----------
    variable : Variable
        The variable.
    role : VariableRole
        The role. Nothing happens if the variable has it, or one that descends from it, already.

    Examples
    --------
    >>> from aesara import tensor
    >>> W = tensor.matrix()
    >>> add_role(W, PARAMETER)
    >>> add_role(W, WEIGHT)
    >>> W.tag.roles
    [WEIGHT]
    """
    roles = getattr(variable.tag, "roles", [])
    if any(isinstance(old, type(role)) for old in roles):
        return
    # A new list: copies of a variable share their tag's lists with it.
    variable.tag.roles = [old for old in roles if not isinstance(role, type(old))] + [role]


def has_roles(variable: Variable, roles: Iterable[VariableRole], match_all: bool = False) -> bool:
    """Say whether a variable has a role, or one that descends from it.

    Parameters
    ----------
    variable : Variable
        The variable.
    roles : iterable of VariableRole
        The roles to look for.
    match_all : bool, optional
        Whether all of them must be there; any of them by default.

    Returns
    -------
    bool
        Whether they are.
    """
    own = getattr(variable.tag, "roles", [])
    matches = (any(isinstance(mine, type(role)) for mine in own) for role in roles)
    return all(matches) if match_all else any(matches)


class InputRole(VariableRole):
    """The copy of an input of an application."""


class OutputRole(VariableRole):
    """The copy of an output of an application."""


class CostRole(VariableRole):
    """A scalar to be minimized."""


class AuxiliaryRole(VariableRole):
    """A variable of interest that the outputs do not depend on."""


class DropoutRole(VariableRole):
    """What stands in the place of a variable after dropout."""


class CollectedRole(VariableRole):
    """A parameter that is a slice of one vector of all parameters."""


class PersistentRole(VariableRole):
    """A shared variable that belongs to the model and is saved with it."""


class ParameterRole(PersistentRole):
    """A persistent variable that is learned."""


class WeightRole(ParameterRole):
    """The weights of an affine transformation."""


class FilterRole(WeightRole):
    """The filters of a convolution."""


class BiasRole(ParameterRole):
    """The biases of an affine transformation."""


class InitialStateRole(ParameterRole):
    """The state of a recurrent brick before its first step."""


class CollectorRole(ParameterRole):
    """The vector of all parameters that ``collect_parameters`` makes."""


class BatchNormScaleParameterRole(ParameterRole):
    """The learned scale of a batch normalization."""


class BatchNormShiftParameterRole(BiasRole):
    """The learned shift of a batch normalization."""


class BatchNormPopulationStatisticsRole(PersistentRole):
    """Statistics of a whole data set, for batch normalization in inference."""


class BatchNormPopulationMeanRole(BatchNormPopulationStatisticsRole):
    """The mean over a whole data set."""


class BatchNormPopulationStdevRole(BatchNormPopulationStatisticsRole):
    """The standard deviation over a whole data set."""


class AlgorithmStateRole(VariableRole):
    """A shared variable of a training algorithm."""


class AlgorithmHyperparameterRole(AlgorithmStateRole):
    """A setting of a training algorithm, such as the learning rate."""


class AlgorithmBufferRole(AlgorithmStateRole):
    """What a training algorithm remembers, such as a velocity."""


class BatchNormGraphVariableRole(VariableRole):
    """A variable of the graph of batch normalization."""


class BatchNormOffsetRole(BatchNormGraphVariableRole):
    """What batch normalization subtracts."""


class BatchNormDivisorRole(BatchNormGraphVariableRole):
    """What batch normalization divides by."""


class BatchNormMinibatchEstimateRole(BatchNormGraphVariableRole):
    """A statistic of one batch."""


INPUT = InputRole()
OUTPUT = OutputRole()
COST = CostRole()
AUXILIARY = AuxiliaryRole()
DROPOUT = DropoutRole()
COLLECTED = CollectedRole()
PERSISTENT = PersistentRole()
PARAMETER = ParameterRole()
WEIGHT = WeightRole()
FILTER = FilterRole()
BIAS = BiasRole()
INITIAL_STATE = InitialStateRole()
COLLECTOR = CollectorRole()
BATCH_NORM_SCALE_PARAMETER = BatchNormScaleParameterRole()
BATCH_NORM_SHIFT_PARAMETER = BatchNormShiftParameterRole()
BATCH_NORM_POPULATION_STATISTICS = BatchNormPopulationStatisticsRole()
BATCH_NORM_POPULATION_MEAN = BatchNormPopulationMeanRole()
BATCH_NORM_POPULATION_STDEV = BatchNormPopulationStdevRole()
ALGORITHM_STATE = AlgorithmStateRole()
ALGORITHM_HYPERPARAMETER = AlgorithmHyperparameterRole()
ALGORITHM_BUFFER = AlgorithmBufferRole()
BATCH_NORM_GRAPH_VARIABLE = BatchNormGraphVariableRole()
BATCH_NORM_OFFSET = BatchNormOffsetRole()
BATCH_NORM_DIVISOR = BatchNormDivisorRole()
BATCH_NORM_MINIBATCH_ESTIMATE = BatchNormMinibatchEstimateRole()
