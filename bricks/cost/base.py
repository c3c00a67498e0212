"""What all costs have in common."""

from abc import abstractmethod
from typing import Any

from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float
from bricks.base import Brick, application
from bricks.checks import check_ndim, check_same_shape

__all__ = ["Cost", "CostMatrix", "matching_pair"]


class Cost(Brick):
    """The base class of bricks whose application gives a scalar cost."""

    @abstractmethod
    @application
    def apply(self, y: Variable, y_hat: Variable) -> Variable:
        """Cost of predictions.

        Parameters
        ----------
        y : Variable
            The targets.
        y_hat : Variable
            The predictions.

        Returns
        -------
        Variable
            A scalar.
        """


class CostMatrix(Cost):
    """The base class of costs that are summed over features and averaged over the batch."""

    @application(outputs=["cost"])
    def apply(self, application: Any, *args: Variable, **kwargs: Variable) -> Variable:
        """Cost of predictions.

        Parameters
        ----------
        *args, **kwargs : Variable
            For `cost_matrix`: the targets ``y`` and the predictions ``y_hat``.

        Returns
        -------
        Variable
            A scalar.
        """
        costs = self.cost_matrix(*args, **kwargs)
        check_ndim(application.path, 2, cost_matrix=costs)
        return costs.sum(axis=1).mean()

    @abstractmethod
    @application
    def cost_matrix(self, y: Variable, y_hat: Variable) -> Variable:
        """Cost of each feature of each example.

        Parameters
        ----------
        y : Variable of shape (batch, feature)
            The targets.
        y_hat : Variable of shape (batch, feature)
            The predictions.

        Returns
        -------
        Variable of shape (batch, feature)
        """


def matching_pair(
    application: str, y: Variable, y_hat: Variable, ndim: int = 2
) -> tuple[Variable, Variable]:
    """Targets and predictions that fit each other, without a wider dtype than they need.

    Parameters
    ----------
    application : str
        Path of the application that has them, for messages.
    y : Variable
        The targets.
    y_hat : Variable
        The predictions, of the same shape.
    ndim : int
        How many axes they must have at least.

    Returns
    -------
    tuple of two Variables
        Of floating-point numbers.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    check_ndim(application, ndim, y=y, y_hat=y_hat)
    check_same_shape(application, y=y, y_hat=y_hat)
    y_hat = as_float(y_hat)
    return as_float(y, y_hat.dtype), y_hat
