"""A trained model as a function of its inputs, without the script or the data that trained it."""

import os
from collections.abc import Iterable
from typing import Any

from aesara.graph.basic import Variable
from aesara.scan.op import Scan

from bricks.archive import Archive
from bricks.graph import ComputationGraph
from bricks.graph.noise import noise_taken_out
from bricks.model import Model
from bricks.pickling import unpickle_from
from bricks.roles import COLLECTED, OUTPUT, has_roles
from bricks.serialization import MODEL
from bricks.utils import find_bricks
from fuel_data.utils.names import nearest_name


def load(
    path: str | os.PathLike[str],
    outputs: str | Iterable[str] | None = None,
    *,
    stochastic: bool = False,
) -> Any:
    """Load a trained model from a checkpoint and compile it.

    This unpickles the model, which runs the code that the pickle names: only for files that one
    trusts.

    Parameters
    ----------
    path : path
        A checkpoint of a main loop that has a model.
    outputs : str or iterable of str, optional
        What to compute: names of variables (``'mlp_apply_output'``), paths of bricks
        (``'/mlp'``) or of their applications (``'/softmax.log_probabilities'``). The outputs of
        the model by default.
    stochastic : bool
        Whether to keep what makes the model random. By default what `apply_dropout` and
        `apply_noise` put into it is taken out, so that equal inputs give equal outputs.

    Returns
    -------
    bricks.xla.Function
        Takes the inputs that these outputs need, by position or by name, and returns an array,
        or a list of them if there are several outputs. ``function.inputs`` are the inputs, in
        the order of the model's.

    Raises
    ------
    DamagedArchive, ForeignFile
        If the file cannot be used.
    ValueError
        If the checkpoint holds no model, or an output is not in it, or is random for another
        reason than dropout and noise.

    Examples
    --------
    >>> import tempfile
    >>> import numpy
    >>> from aesara import tensor
    >>> import bricks
    >>> from bricks import MLP, Softmax
    >>> from bricks.algorithms import GradientDescent
    >>> from bricks.initialization import Constant
    >>> from bricks.main_loop import MainLoop
    >>> from bricks.serialization import dump
    >>> mlp = MLP([Softmax()], [3, 2], weights_init=Constant(0), biases_init=Constant(0))
    >>> mlp.initialize()
    >>> cost = mlp.apply(tensor.matrix("features")).mean()
    >>> main_loop = MainLoop(GradientDescent(cost), data_stream=None, model=Model(cost))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump(main_loop, f"{folder}/model.zip")    # what the Checkpoint extension does
    ...     function = bricks.load(f"{folder}/model.zip", outputs="/mlp")
    >>> function(features=numpy.ones((1, 3), "float32")).tolist()
    [[0.5, 0.5]]
    """
    from bricks import xla

    with Archive(path) as archive:
        if MODEL + ".pkl" not in archive.member_names():
            raise ValueError(_no_model(archive))
        model = unpickle_from(archive, MODEL + ".pkl")
    if not stochastic:
        model = _without_noise(model)
    if outputs is None:
        chosen = list(model.outputs)
    else:
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        chosen = [variable for name in names for variable in _find(archive.path, model, name)]
    if not stochastic:
        _check_not_random(archive.path, chosen)
    single = len(chosen) == 1 and (outputs is None or isinstance(outputs, str))
    needed = set(ComputationGraph(chosen).inputs)
    inputs = [variable for variable in model.inputs if variable in needed]
    name = f"model of {archive.path}"
    return xla.function(inputs, chosen[0] if single else chosen, name=name)


def _without_noise(model: Model) -> Model:
    """The model with what dropout and noise were applied to, in the steps of its loops too."""
    originals = {
        variable: variable.tag.replacement_of
        # What was saved before there was a depth is found in this way, outside of loops.
        for variable in model.variables
        # Parameters that are collected in one vector hold no values of their own any more.
        if hasattr(variable.tag, "replacement_of") and not has_roles(variable, [COLLECTED])
    }
    originals |= noise_taken_out([*model.variables, *model.scan_variables])
    return Model(model.replace(originals).outputs) if originals else model


def _check_not_random(path: str, outputs: list[Variable]) -> None:
    keys = {str(v.name) for v in _leaves(outputs) if getattr(v.tag, "is_random_key", False)}
    if keys:
        raise ValueError(
            f"{path}: what was asked for is random: it depends on the random keys "
            f"{', '.join(sorted(keys))}. Choose other `outputs`, load with `stochastic=True`, or "
            "give the main loop a model that is not random."
        )


def _leaves(outputs: Iterable[Variable]) -> list[Variable]:
    """What outputs are computed from, without what loops are given and do not use."""
    found: dict[Variable, None] = {}
    waiting = list(outputs)
    while waiting:
        variable = waiting.pop()
        if variable in found:
            continue
        found[variable] = None
        node: Any = variable.owner
        if node is not None:
            waiting.extend(_used_by(node.op, node.inputs))
    return [variable for variable in found if variable.owner is None]


def _used_by(op: Any, given: list[Variable]) -> list[Variable]:
    """The inputs of a node without those that a loop does not use."""
    if not isinstance(op, Scan):
        return given
    inner = set(_leaves(op.inner_outputs))
    places = op.get_oinp_iinp_iout_oout_mappings()["inner_inp_from_outer_inp"]
    return [
        variable
        for place, variable in enumerate(given)
        if not places.get(place) or inner & {op.inner_inputs[i] for i in places[place]}
    ]


def _no_model(archive: Archive) -> str:
    reason = archive.manifest.get("not_pickled", {}).get(MODEL)
    if reason is None:
        reason = "it was saved from a main loop without `model`; make one with `model=Model(cost)`."
    return f"{archive.path} holds no model: {reason}"


def _find(path: str, model: Model, name: str) -> list[Variable]:
    """Find the variables of a name, or the outputs of a brick or of an application."""
    places: dict[str, list[Variable]] = {}
    for variable in model.variables:
        if variable.name is not None:
            places.setdefault(variable.name, []).append(variable)
    for place, variable in _outputs_by_place(model):
        places.setdefault(place, []).append(variable)
    if name not in places:
        raise ValueError(f"{path}: the model has no output {name!r}.{nearest_name(name, places)}")
    return places[name]


def _outputs_by_place(model: Model) -> Iterable[tuple[str, Variable]]:
    """Pairs of where an output is made (the brick, the application of a brick) and the output."""
    known = set(find_bricks(model.top_bricks, lambda brick: True))
    for variable in model.variables:
        if not has_roles(variable, [OUTPUT]):
            continue
        for annotation in variable.tag.annotations:
            application = getattr(annotation, "application", None)
            if application is not None and application.brick in known:
                place = "/" + "/".join(b.name for b in application.brick.get_unique_path())
                yield place, variable
                yield f"{place}.{application.application_name}", variable
