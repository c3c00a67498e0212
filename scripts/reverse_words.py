"""Learn to write words backwards: a bidirectional encoder, attention and beam search.

``python scripts/reverse_words.py --checkpoint words.zip`` starts a run, or goes on with it after it
was stopped or killed. ``word_streams.py`` says where the words come from, and how to get them. The
model is judged by words that were not among those of the training.
"""

import argparse
from pathlib import Path

import word_streams
from word_reverser import WordReverser, WriteWords

from bricks.algorithms import Adam, CompositeRule, GradientDescent, StepClipping
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.log import JSONLinesLog
from bricks.main_loop import MainLoop
from bricks.model import Model
from bricks.search import BeamSearch
from extensions import FinishAfter, Printing, ProgressBar
from extensions.monitoring import NonFiniteCost, TrainingDataMonitoring
from extensions.saveload import Checkpoint
from fuel_data.server import serve

# isort: split
# After bricks, which sets Aesara up.
from aesara import tensor

STREAMS = Path(__file__).with_name("word_streams.py")


def build_main_loop(arguments: argparse.Namespace) -> MainLoop:
    """Put model, data, algorithm and extensions together.

    Parameters
    ----------
    arguments : argparse.Namespace
        What `parse_arguments` gives.

    Returns
    -------
    MainLoop
        Ready to run.
    """
    words, mask = tensor.lmatrix("words"), tensor.matrix("words_mask")
    targets, targets_mask = tensor.lmatrix("reversed"), tensor.matrix("reversed_mask")
    reverser = WordReverser(
        arguments.dim,
        weights_init=IsotropicGaussian(0.1),
        biases_init=Constant(0),
        seed=arguments.seed,
    )
    reverser.initialize()
    cost = reverser.cost(words, mask, targets, targets_mask)
    cost.name = "cost"
    search = BeamSearch(reverser.generate(words, mask), beam_size=arguments.beam_size, n_best=1)
    algorithm = GradientDescent(
        cost=cost,
        parameters=ComputationGraph(cost).parameters,
        step_rule=CompositeRule([StepClipping(5.0), Adam(arguments.learning_rate)]),
    )
    # Read from wherever the server runs.
    text = str(Path(arguments.text).resolve())
    word_streams.read_text(text)
    train = serve(
        f"{STREAMS}:train", text=text, batch_size=arguments.batch_size, seed=arguments.seed
    )
    checkpoint = Path(arguments.checkpoint)
    return MainLoop(
        algorithm,
        train,
        model=Model(cost),
        log=JSONLinesLog(checkpoint.with_suffix(".jsonl")),
        extensions=[
            FinishAfter(after_n_epochs=arguments.epochs),
            NonFiniteCost(),
            TrainingDataMonitoring([cost], prefix="train", after_epoch=True),
            WriteWords(
                search,
                serve(f"{STREAMS}:test", text=text),
                every_n_epochs=arguments.write_every,
                after_epoch=False,
            ),
            Checkpoint(checkpoint, every_n_batches=arguments.checkpoint_every),
            ProgressBar(),
            Printing(after_epoch=True),
        ],
    )


def parse_arguments(args: list[str] | None = None) -> argparse.Namespace:
    """Read the command line.

    Parameters
    ----------
    args : list of str, optional
        In place of the command line.

    Returns
    -------
    argparse.Namespace
        The arguments.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default=word_streams.AUSTEN, help="see word_streams.py")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--dim", type=int, default=64, help="units of each recurrent layer")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.004)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--checkpoint", default="words.zip", help="file to write, and to go on from"
    )
    parser.add_argument("--checkpoint-every", type=int, default=200, metavar="BATCHES")
    parser.add_argument("--write-every", type=int, default=5, metavar="EPOCHS")
    return parser.parse_args(args)


if __name__ == "__main__":
    build_main_loop(parse_arguments()).run(resume="auto")
