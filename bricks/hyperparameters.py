"""Hyperparameters as a script gives them, beside those that a checkpoint holds.

The checkpoint's hold when a run is resumed, because they may have been changed while it ran. So
that a value that is changed in the script is not passed over in silence, a checkpoint's manifest
also keeps what the script said when it built the algorithm.
"""

import warnings
from collections.abc import Mapping
from typing import Any

from bricks.roles import ALGORITHM_HYPERPARAMETER, has_roles


def get_hyperparameters(algorithm: Any) -> dict[str, Any]:
    """Read the present values of an algorithm's hyperparameters.

    Parameters
    ----------
    algorithm : TrainingAlgorithm
        Any.

    Returns
    -------
    dict of str to float or nested list of float
        By the names that they have in checkpoints.
    """
    variables: Mapping[str, Any] = getattr(algorithm, "get_state_variables", dict)()
    return {
        name: variable.get_value().tolist()
        for name, variable in variables.items()
        if has_roles(variable, [ALGORITHM_HYPERPARAMETER])
    }


def compare_with_script(
    now: Mapping[str, Any], manifest: Mapping[str, Any], taken: Mapping[str, Any]
) -> dict[str, Any]:
    """Warn of values that were changed in the script and are not taken from it.

    Parameters
    ----------
    now : mapping of str to float or list
        What the script says.
    manifest : mapping
        Of the checkpoint, which holds what the script said as ``script_values``. One of a version
        that did not write it down is not compared.
    taken : mapping of str to float or list
        The values after the checkpoint was restored.

    Returns
    -------
    dict of str to float or list
        For each value, what the script said when it was last heeded.

    Warns
    -----
    UserWarning
        Once, with all values that differ.
    """
    heeded, lines = dict(now), []
    for name, then in manifest.get("script_values", {}).items():
        if name in now and then != now[name] != taken[name]:
            heeded[name] = then
            lines.append(
                f"{name}: the script now says {_words(now[name])} and said {_words(then)}; the "
                f"checkpoint's {_words(taken[name])} is taken. To take the script's: "
                f"restore(path, ignore=[{name!r}]), or run(resume=..., ignore=[{name!r}])."
            )
    if lines:
        warnings.warn("\n".join(lines), stacklevel=3)
    return heeded


def _words(value: Any) -> str:
    # The shortest that tells float32 apart; a double shows what it is in six or seven digits too.
    return f"{value:.7g}" if isinstance(value, float) else str(value)
