"""Sequence generators: a transition, a readout, and what stands between them."""

from collections.abc import Mapping
from typing import Any

from aesara import tensor
from aesara.tensor.var import TensorVariable as Variable

from bricks.aesara_expressions import as_float, lengths_of
from bricks.attention import AttentionRecurrent
from bricks.base import application
from bricks.checks import describe
from bricks.interfaces import Initializable
from bricks.parallel import Fork
from bricks.recurrent import recurrent
from bricks.roles import COST, add_role
from fuel_data.utils.names import nearest_name

__all__ = ["BaseSequenceGenerator", "FakeAttentionRecurrent", "SequenceGenerator"]

#: Where the call of `generate` keeps what it was given, for a search to find.
GIVEN = "given "


class BaseSequenceGenerator(Initializable):
    """A generator of sequences, from its three parts.

    Parameters
    ----------
    readout : AbstractReadout
        Makes outputs of states, glimpses, contexts and the output before.
    transition : Brick
        A recurrent brick with the applications of `AbstractAttentionRecurrent`: ``apply``,
        ``take_glimpses``, ``compute_states`` and ``initial_states``.
    fork : Brick
        Makes the inputs of the transition of what is fed back.
    **kwargs
        For `Initializable`.

    Notes
    -----
    The glimpses of a step are taken with the states before it; the readout sees both. Outputs
    have the axes (time, batch), and one of features if the emitter has it.

    The costs of training and of generation are those of the emitter, without a mean: NLLs in nats,
    with `SoftmaxEmitter`. To train on sequences in pieces, hand the auxiliary variables
    ``<state>_final_value`` of one call to the next as its initial states. The first output of a
    piece is read out with `initial_outputs` as its feedback, so with ``'feedback'`` among the
    sources its cost differs.
    """

    def __init__(self, readout: Any, transition: Any, fork: Any, **kwargs: Any) -> None:
        self.readout = readout
        self.transition = transition
        self.fork = fork
        kwargs["children"] = [readout, transition, fork, *kwargs.get("children", ())]
        super().__init__(**kwargs)

    @property
    def state_names(self) -> list[str]:
        """Names of the states of the transition."""
        return list(self.transition.compute_states.outputs)

    @property
    def glimpse_names(self) -> list[str]:
        """Names of the glimpses, if there is attention."""
        return list(self.transition.take_glimpses.outputs)

    @property
    def context_names(self) -> list[str]:
        """Names of the contexts: ``attended``, ``attended_mask`` and others."""
        return list(self.transition.apply.contexts)

    def _push_allocation_config(self) -> None:
        # The transition first: the readout's sources are asked for their sizes.
        self.transition.push_allocation_config()
        known = [*self.state_names, *self.context_names, *self.glimpse_names]
        for name in self.readout.source_names:
            if name not in (*known, "feedback"):
                raise ValueError(
                    f"{self.path} cannot be allocated: the readout has the source {name!r}, and "
                    f"there are {', '.join(known)} and feedback."
                    f"{nearest_name(name, [*known, 'feedback'])}"
                )
        self.readout.source_dims = [
            (self.transition if name in known else self.readout).get_dim(name)
            for name in self.readout.source_names
        ]
        self.readout.push_allocation_config()
        self.fork.input_dim = self.readout.get_dim("feedback")
        self.fork.output_dims = self.transition.get_dims(self.fork.apply.outputs)

    @application
    def cost(
        self, application_call: Any, outputs: Variable, mask: Any = None, **kwargs: Any
    ) -> Variable:
        """Cost of given sequences: the mean over the batch of the sums over time.

        Parameters
        ----------
        outputs : Variable of shape (time, batch) or (time, batch, feature)
            The sequences.
        mask : Variable of shape (time, batch), optional
            0 for padding.
        **kwargs : Variable
            Contexts, and initial states and glimpses, by name.

        Returns
        -------
        Variable
            A scalar. The mean over all elements is an auxiliary variable called
            ``per_sequence_element``.
        """
        costs = self.cost_matrix(outputs, mask=mask, **kwargs)
        cost = costs.sum(axis=0).mean()
        add_role(cost, COST)
        per_element = costs.mean() if mask is None else costs.sum() / as_float(mask).sum()
        application_call.add_auxiliary_variable(per_element, name="per_sequence_element")
        return cost

    @application
    def cost_matrix(
        self, application_call: Any, outputs: Variable, mask: Any = None, **kwargs: Any
    ) -> Variable:
        """Cost of each element of given sequences.

        Parameters
        ----------
        outputs : Variable of shape (time, batch) or (time, batch, feature)
            The sequences.
        mask : Variable of shape (time, batch), optional
            0 for padding, which costs nothing.
        **kwargs : Variable
            Contexts, and initial states and glimpses, by name.

        Returns
        -------
        Variable of shape (time, batch)
            States and glimpses over time are auxiliary variables, by their names; and those after
            the last step, as ``<name>_final_value``.
        """
        costs, results = self._evaluated(application_call, outputs, mask, kwargs)
        for name, variable in results.items():
            application_call.add_auxiliary_variable(variable.copy(), name=name)
        return costs

    @application
    def evaluate(
        self, application_call: Any, outputs: Variable, mask: Any = None, **kwargs: Any
    ) -> list[Variable]:
        """Cost of each element of given sequences, and what it was computed from.

        Parameters
        ----------
        outputs : Variable of shape (time, batch) or (time, batch, feature)
            The sequences.
        mask : Variable of shape (time, batch), optional
            0 for padding, which costs nothing.
        **kwargs : Variable
            Contexts, and initial states and glimpses, by name.

        Returns
        -------
        costs : Variable of shape (time, batch)
        *states : Variable of shape (time, batch, ...)
            The states before each element.
        *glimpses : Variable of shape (time, batch, ...)
            The glimpses that each element was read out with. States and glimpses after the last
            element are auxiliary variables, ``<name>_final_value``.
        """
        costs, results = self._evaluated(application_call, outputs, mask, kwargs)
        return [costs, *results.values()]

    @evaluate.property("outputs")
    def evaluate_outputs(self) -> list[str]:
        """Names of the outputs: ``costs``, states, glimpses.

        Returns
        -------
        list of str
        """
        return ["costs", *self.state_names, *self.glimpse_names]

    def _evaluated(
        self, call: Any, outputs: Variable, mask: Any, given: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Return the costs, and states and glimpses by name."""
        self._check_evaluated(call.application.path, outputs, given)
        batch_size = lengths_of(outputs)[1]
        carried = [*self.state_names, *self.glimpse_names]
        contexts = _those(self.context_names, given)
        feedback = self.readout.feedback(outputs)
        results = self.transition.apply(
            mask=mask,
            return_initial_states=True,
            as_dict=True,
            **self._inputs(feedback),
            **_those(carried, given),
            **contexts,
        )
        # States are those before the step, which its output depends on; glimpses are of the step.
        states = {name: results[name][:-1] for name in self.state_names}
        glimpses = {name: results[name][1:] for name in self.glimpse_names}
        first = self.readout.feedback(self.readout.initial_outputs(batch_size))
        before = tensor.concatenate([first[None], feedback[:-1]])
        readouts = self.readout.readout(feedback=before, **states, **glimpses, **contexts)
        costs = self.readout.cost(readouts, outputs)
        if mask is not None:
            # Not only multiplied: what stands at padding may cost NaN.
            costs = tensor.switch(tensor.eq(mask, 0), 0, costs * as_float(mask, costs.dtype))
        for name in carried:
            call.add_auxiliary_variable(results[name][-1].copy(), name=f"{name}_final_value")
        return costs, {**states, **glimpses}

    def _check_evaluated(self, path: str, outputs: Variable, given: Mapping[str, Any]) -> None:
        """Refuse sequences without axes of time and batch, and arguments that nobody takes."""
        if outputs.ndim < 2:
            raise ValueError(
                f"{path}: `outputs` must have the axes (time, batch) or (time, batch, feature); "
                f"got {describe(outputs)}."
            )
        known = [*self.context_names, *self.state_names, *self.glimpse_names]
        for name in given:
            if name not in known:
                raise TypeError(f"{path}: unexpected argument {name!r}.{nearest_name(name, known)}")

    @application
    def generate(self, application_call: Any, **kwargs: Any) -> list[Variable]:
        """Generate sequences, each output of which is fed back.

        Parameters
        ----------
        n_steps : int or Variable
            Length of the sequences.
        batch_size : int or Variable
            Number of the sequences.
        iterate : bool
            False takes one step: `outputs`, all states, glimpses and contexts must then be given.
        return_initial_states : bool
            True puts the initial value of each state, of ``outputs`` and of each glimpse before
            the others.
        **kwargs : Variable
            Contexts, and initial states, glimpses and ``outputs``, by name.

        Returns
        -------
        *states : Variable of shape (time, batch, ...)
            After each output.
        outputs : Variable of shape (time, batch) or (time, batch, feature)
        *glimpses : Variable of shape (time, batch, ...)
            That each output was read out with.
        costs : Variable of shape (time, batch)
        """
        for name, value in kwargs.items():
            application_call.metadata[GIVEN + name] = value
        return self.take_steps(as_list=True, **kwargs)

    @generate.delegate
    def generate_delegate(self) -> Any:
        """Give the application that knows `states`, `outputs` and `contexts`.

        Returns
        -------
        BoundApplication
        """
        return self.take_steps

    @recurrent
    def take_steps(self, outputs: Variable, **kwargs: Any) -> list[Variable]:
        """Take steps of generation; see :meth:`generate`, which is what is called."""
        known = {**kwargs, "outputs": outputs}
        readouts, glimpses = self.read_out(known)
        emitted = self.readout.emit(readouts)
        costs = self.readout.cost(readouts, emitted)
        states = self.next_states(emitted, {**known, **glimpses})
        return [*states.values(), emitted, *glimpses.values(), costs]

    @take_steps.property("sequences")
    def take_steps_sequences(self) -> list[str]:
        """Nothing: what a step depends on is fed back.

        Returns
        -------
        list of str
        """
        return []

    @take_steps.property("contexts")
    def take_steps_contexts(self) -> list[str]:
        """Names of the contexts of the transition.

        Returns
        -------
        list of str
        """
        return self.context_names

    @take_steps.property("states")
    def take_steps_states(self) -> list[str]:
        """Names of what is fed back: states, ``outputs``, glimpses.

        Returns
        -------
        list of str
        """
        return [*self.state_names, "outputs", *self.glimpse_names]

    @take_steps.property("outputs")
    def take_steps_outputs(self) -> list[str]:
        """Names of what comes out: states, ``outputs``, glimpses, ``costs``.

        Returns
        -------
        list of str
        """
        return [*self.state_names, "outputs", *self.glimpse_names, "costs"]

    def read_out(self, known: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Take glimpses and read out, which is the first half of a step.

        Parameters
        ----------
        known : mapping of str to Variable
            States, glimpses, contexts and ``outputs`` at the beginning of the step.

        Returns
        -------
        readouts : Variable of shape (batch, readout)
        glimpses : dict of str to Variable
            The new ones.
        """
        states = _those(self.state_names, known)
        contexts = _those(self.context_names, known)
        old = _those(self.glimpse_names, known)
        glimpses = self._named_glimpses(**states, **old, **contexts)
        readouts = self.readout.readout(
            feedback=self.readout.feedback(known["outputs"]), **states, **glimpses, **contexts
        )
        return readouts, glimpses

    def next_states(self, outputs: Variable, known: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the states after an output, which is the second half of a step.

        Parameters
        ----------
        outputs : Variable of shape (batch, ...)
            What was emitted.
        known : mapping of str to Variable
            States before it, glimpses and contexts.

        Returns
        -------
        dict of str to Variable
            The states.
        """
        names = [*self.state_names, *self.glimpse_names, *self.context_names]
        inputs = self._inputs(self.readout.feedback(outputs))
        return dict(self.transition.compute_states(as_dict=True, **inputs, **_those(names, known)))

    def _named_glimpses(self, **known: Any) -> dict[str, Any]:
        if not self.glimpse_names:
            return {}
        return dict(self.transition.take_glimpses(as_dict=True, **known))

    def _inputs(self, feedback: Variable) -> dict[str, Any]:
        """Make the inputs of the transition of what is fed back."""
        return dict(self.fork.apply(feedback, as_dict=True))

    @application
    def initial_states(self, batch_size: Any, **kwargs: Any) -> list[Variable]:
        """States, ``outputs`` and glimpses before the first step.

        Parameters
        ----------
        batch_size : int or Variable
            Number of the sequences.
        **kwargs : Variable
            Contexts, by name.

        Returns
        -------
        list of Variable
            In the order of ``generate.states``.
        """
        states = dict(self.transition.initial_states(batch_size, as_dict=True, **kwargs))
        states["outputs"] = self.readout.initial_outputs(batch_size)
        return [states[name] for name in self.take_steps.states]

    @initial_states.property("outputs")
    def initial_states_outputs(self) -> list[str]:
        """Names of what is fed back: states, ``outputs``, glimpses.

        Returns
        -------
        list of str
        """
        return self.take_steps.states

    def get_dim(self, name: str) -> Any:
        """Features of a state, a context, a glimpse or ``'outputs'``; see `Brick.get_dim`."""
        if name in (*self.state_names, *self.context_names, *self.glimpse_names):
            return self.transition.get_dim(name)
        return self.readout.get_dim(name) if name == "outputs" else super().get_dim(name)


def _those(names: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is given of some names, None counting as not given."""
    return {name: given[name] for name in names if given.get(name) is not None}


class FakeAttentionRecurrent(Initializable):
    """Give a transition without attention the applications of one that has it.

    Parameters
    ----------
    transition : BaseRecurrent
        The transition.
    **kwargs
        For `Initializable`.
    """

    def __init__(self, transition: Any, **kwargs: Any) -> None:
        self.transition = transition
        kwargs["children"] = [transition, *kwargs.get("children", ())]
        super().__init__(**kwargs)

    @application
    def apply(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the transition over time."""
        return self.transition.apply(*args, as_list=True, **kwargs)

    @apply.delegate
    def apply_delegate(self) -> Any:
        """Give the application that knows the names.

        Returns
        -------
        BoundApplication
        """
        return self.transition.apply

    @application
    def compute_states(self, *args: Any, **kwargs: Any) -> Any:
        """Take one step of the transition."""
        return self.transition.apply(*args, iterate=False, as_list=True, **kwargs)

    @compute_states.delegate
    def compute_states_delegate(self) -> Any:
        """Give the application that knows the names.

        Returns
        -------
        BoundApplication
        """
        return self.transition.apply

    @application(outputs=[])
    def take_glimpses(self, **kwargs: Any) -> list[Any]:
        """Look at nothing.

        Parameters
        ----------
        **kwargs : Variable
            States and contexts.

        Returns
        -------
        list
            Empty.
        """
        return []

    @application
    def initial_states(self, batch_size: Any, *args: Any, **kwargs: Any) -> Any:
        """Give the initial states of the transition."""
        return self.transition.initial_states(batch_size, *args, as_list=True, **kwargs)

    @initial_states.delegate
    def initial_states_delegate(self) -> Any:
        """Give the application that knows the names.

        Returns
        -------
        BoundApplication
        """
        return self.transition.initial_states

    def get_dim(self, name: str) -> Any:
        """Features of what the transition takes and gives; see `Brick.get_dim`."""
        return self.transition.get_dim(name)


class SequenceGenerator(BaseSequenceGenerator):
    """A generator of sequences, perhaps with attention.

    Parameters
    ----------
    readout : AbstractReadout
        Makes outputs of states, glimpses, contexts and the output before.
    transition : BaseRecurrent
        The recurrent brick. Its sequences but masks are its inputs.
    attention : AbstractAttention, optional
        What looks at the context ``attended``.
    add_contexts : bool
        Whether the attention adds the contexts ``attended`` and ``attended_mask``; False if the
        transition has them already.
    **kwargs
        For `BaseSequenceGenerator`: `fork`, a `Fork` by default; and for `Initializable`.

    Examples
    --------
    A language model of 5 symbols, and what a sequence of two symbols costs:

    >>> import numpy
    >>> from aesara import tensor
    >>> from bricks import xla
    >>> from bricks.initialization import Constant
    >>> from bricks.recurrent import SimpleRecurrent
    >>> from bricks.sequence_generators import LookupFeedback, Readout, SoftmaxEmitter
    >>> from bricks import Tanh
    >>> generator = SequenceGenerator(
    ...     Readout(source_names=["states"], readout_dim=5,
    ...             emitter=SoftmaxEmitter(), feedback_brick=LookupFeedback(5, 3)),
    ...     SimpleRecurrent(dim=4, activation=Tanh()),
    ...     weights_init=Constant(0), biases_init=Constant(0))
    >>> generator.initialize()
    >>> x = tensor.lmatrix("x")                                # axes: time, batch
    >>> round(float(xla.function([x], generator.cost(x))([[1], [4]])), 3)   # 2 log 5
    3.219
    >>> states, outputs, costs = generator.generate(n_steps=3, batch_size=2)
    >>> xla.function([], outputs)().shape
    (3, 2)
    """

    def __init__(
        self,
        readout: Any,
        transition: Any,
        attention: Any = None,
        add_contexts: bool = True,
        **kwargs: Any,
    ) -> None:
        inputs = [name for name in transition.apply.sequences if "mask" not in name]
        kwargs.setdefault("fork", Fork(inputs))
        if attention is None:
            transition = FakeAttentionRecurrent(transition, name="with_fake_attention")
        else:
            transition = AttentionRecurrent(
                transition, attention, add_contexts=add_contexts, name="att_trans"
            )
        super().__init__(readout, transition, **kwargs)
