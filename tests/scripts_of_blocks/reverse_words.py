"""Learn to write words backwards, then sample and search: a script as one wrote them for Blocks."""

import logging
from argparse import ArgumentParser

import numpy
from blocks.algorithms import Adam, CompositeRule, GradientDescent, StepClipping
from blocks.bricks import Initializable, Tanh
from blocks.bricks.attention import SequenceContentAttention
from blocks.bricks.base import application
from blocks.bricks.lookup import LookupTable
from blocks.bricks.parallel import Fork
from blocks.bricks.recurrent import Bidirectional, GatedRecurrent, SimpleRecurrent
from blocks.bricks.sequence_generators import (
    LookupFeedback,
    Readout,
    SequenceGenerator,
    SoftmaxEmitter,
)
from blocks.extensions import FinishAfter, Printing, Timing
from blocks.extensions.monitoring import TrainingDataMonitoring
from blocks.extensions.saveload import Checkpoint
from blocks.filter import VariableFilter
from blocks.graph import ComputationGraph
from blocks.initialization import Constant, IsotropicGaussian, Orthogonal
from blocks.main_loop import MainLoop
from blocks.model import Model
from blocks.monitoring import aggregation
from blocks.search import BeamSearch
from blocks.select import Selector
from blocks.serialization import load_parameters
from blocks.utils import dict_union
from fuel.datasets import IterableDataset
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import Batch, Mapping, Padding
from theano import tensor

CHARACTERS = [chr(ord("a") + i) for i in range(26)] + ["<S>", "</S>"]
CODES = {character: code for code, character in enumerate(CHARACTERS)}


def encode(word):
    return [CODES["<S>"]] + [CODES[letter] for letter in word] + [CODES["</S>"]]


def add_reversed(data):
    return (data[0][:1] + data[0][-2:0:-1] + data[0][-1:],)


def transpose(data):
    return tuple(array.T for array in data)


class WordReverser(Initializable):
    def __init__(self, dimension, alphabet_size, **kwargs):
        super().__init__(**kwargs)
        encoder = Bidirectional(SimpleRecurrent(dim=dimension, activation=Tanh()))
        fork = Fork([name for name in encoder.prototype.apply.sequences if name != "mask"])
        fork.input_dim = dimension
        fork.output_dims = [encoder.prototype.get_dim(name) for name in fork.input_names]
        transition = GatedRecurrent(activation=Tanh(), dim=dimension, name="transition")
        attention = SequenceContentAttention(
            state_names=transition.apply.states,
            attended_dim=2 * dimension,
            match_dim=dimension,
            name="attention",
        )
        readout = Readout(
            readout_dim=alphabet_size,
            source_names=[transition.apply.states[0], attention.take_glimpses.outputs[0]],
            emitter=SoftmaxEmitter(name="emitter"),
            feedback_brick=LookupFeedback(alphabet_size, dimension),
            name="readout",
        )
        self.lookup = LookupTable(alphabet_size, dimension)
        self.fork = fork
        self.encoder = encoder
        self.generator = SequenceGenerator(
            readout=readout, transition=transition, attention=attention, name="generator"
        )
        self.children = [self.lookup, self.fork, self.encoder, self.generator]

    @application
    def encode(self, chars, chars_mask):
        forked = self.fork.apply(self.lookup.apply(chars), as_dict=True)
        return self.encoder.apply(**dict_union(forked, mask=chars_mask))

    @application
    def cost(self, chars, chars_mask, targets, targets_mask):
        return self.generator.cost_matrix(
            targets,
            targets_mask,
            attended=self.encode(chars, chars_mask),
            attended_mask=chars_mask,
        )

    @application
    def generate(self, chars):
        mask = tensor.ones(chars.shape)
        return self.generator.generate(
            n_steps=2 * chars.shape[0],
            batch_size=chars.shape[1],
            attended=self.encode(chars, mask),
            attended_mask=mask,
        )


def train(reverser, words, save_path, num_batches):
    stream = DataStream(IterableDataset({"chars": [encode(word) for word in words]}))
    stream = Mapping(stream, add_reversed, add_sources=("targets",))
    stream = Batch(stream, iteration_scheme=ConstantScheme(10))
    stream = Mapping(Padding(stream), transpose)

    reverser.weights_init = IsotropicGaussian(0.1)
    reverser.biases_init = Constant(0.0)
    reverser.push_initialization_config()
    reverser.encoder.weights_init = Orthogonal()
    reverser.generator.transition.weights_init = Orthogonal()

    chars = tensor.lmatrix("chars")
    chars_mask = tensor.matrix("chars_mask")
    targets = tensor.lmatrix("targets")
    targets_mask = tensor.matrix("targets_mask")
    batch_cost = reverser.cost(chars, chars_mask, targets, targets_mask).sum()
    batch_size = chars.shape[1].copy(name="batch_size")
    cost = aggregation.mean(batch_cost, batch_size)
    cost.name = "sequence_log_likelihood"
    model = Model(cost)
    for brick in model.get_top_bricks():
        brick.initialize()

    cg = ComputationGraph(cost)
    algorithm = GradientDescent(
        cost=cost,
        parameters=cg.parameters,
        step_rule=CompositeRule([StepClipping(10.0), Adam(0.01)]),
    )
    generator = reverser.generator
    (energies,) = VariableFilter(applications=[generator.readout.readout], name_regex="output")(
        cg.variables
    )
    (activations,) = VariableFilter(
        applications=[generator.transition.apply], name=generator.transition.apply.states[0]
    )(cg.variables)
    observables = [
        cost,
        energies.min().copy(name="min_energy"),
        abs(activations).mean().copy(name="mean_activation"),
        algorithm.total_gradient_norm,
    ]
    for name, parameter in Selector(generator.readout).get_parameters().items():
        observables.append(parameter.norm(2).copy(name + "_norm"))
    main_loop = MainLoop(
        model=model,
        data_stream=stream,
        algorithm=algorithm,
        extensions=[
            Timing(),
            TrainingDataMonitoring(observables, prefix="average", every_n_batches=20),
            FinishAfter(after_n_batches=num_batches).add_condition(
                ["after_batch"],
                lambda log: bool(
                    numpy.isnan(log.current_row.get("average_total_gradient_norm", 0.0))
                ),
            ),
            Checkpoint(save_path, save_main_loop=False),
            Printing(every_n_batches=20, after_epoch=False),
        ],
    )
    main_loop.run()


def read(codes):
    word = "".join(CHARACTERS[code] for code in codes)
    return word.replace("<S>", "").partition("</S>")[0]


def use(reverser, words, save_path, beam_size):
    chars = tensor.lmatrix("input")
    generated = reverser.generate(chars)
    model = Model(generated)
    with open(save_path, "rb") as source:
        model.set_parameter_values(load_parameters(source))
    (samples,) = VariableFilter(applications=[reverser.generator.generate], name="outputs")(
        ComputationGraph(generated[1])
    )
    beam_search = BeamSearch(samples)
    sample = model.get_theano_function()
    for word in words:
        input_ = numpy.repeat(numpy.array(encode(word))[:, None], beam_size, axis=1)
        found, costs = beam_search.search({chars: input_}, CODES["</S>"], 3 * input_.shape[0])
        print("Found:", word, read(found[0]), float(costs[0]))
        _states, outputs, _averages, _weights, costs = sample(input_)
        print("Sampled:", word, [read(output) for output in outputs.T], costs.sum())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    parser = ArgumentParser("Write words backwards")
    parser.add_argument("save_path", nargs="?", default="reverser.tar")
    parser.add_argument("--num-batches", type=int, default=100)
    parser.add_argument("--words", nargs="+", required=True)
    args = parser.parse_args()
    train(
        WordReverser(24, len(CODES), name="reverser"), args.words, args.save_path, args.num_batches
    )
    use(WordReverser(24, len(CODES), name="reverser"), args.words[:3], args.save_path, beam_size=4)
