"""The model of ``reverse_words.py``, and what writes words with it.

It stands in a module of its own so that checkpoints know where it is defined.
"""

from typing import Any

import numpy
import word_streams

from bricks import Initializable, LookupTable, application
from bricks.attention import SequenceContentAttention
from bricks.initialization import Orthogonal
from bricks.parallel import Fork
from bricks.recurrent import Bidirectional, GatedRecurrent
from bricks.search import BeamSearch
from bricks.sequence_generators import LookupFeedback, Readout, SequenceGenerator, SoftmaxEmitter
from extensions.base import SimpleExtension


class WordReverser(Initializable):
    """Reads a word in both directions, and writes it while it looks at what it read.

    Parameters
    ----------
    dim : int
        Units of each recurrent layer; vectors of letters have half as many features.
    **kwargs
        For `Initializable`.
    """

    def __init__(self, dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lookup = LookupTable(word_streams.NUM_SYMBOLS, dim // 2)
        self.encoder = Bidirectional(GatedRecurrent(dim=dim))
        inputs = [name for name in self.encoder.prototype.apply.sequences if name != "mask"]
        self.fork = Fork(inputs, input_dim=dim // 2)
        self.fork.output_dims = self.encoder.prototype.get_dims(inputs)
        attention = SequenceContentAttention(
            state_names=["states"], attended_dim=2 * dim, match_dim=dim
        )
        readout = Readout(
            source_names=["states", "feedback", "weighted_averages"],
            readout_dim=word_streams.NUM_SYMBOLS,
            emitter=SoftmaxEmitter(initial_output=word_streams.END),
            feedback_brick=LookupFeedback(word_streams.NUM_SYMBOLS, dim // 2),
        )
        self.generator = SequenceGenerator(
            readout, GatedRecurrent(dim=dim, name="decoder"), attention
        )
        self.children = [self.lookup, self.fork, self.encoder, self.generator]

    def _push_initialization_config(self) -> None:
        super()._push_initialization_config()
        for transition in (self.encoder, self.generator.transition.transition):
            transition.weights_init = Orthogonal()

    @application(inputs=["words", "words_mask"], outputs=["attended"])
    def read(self, words: Any, words_mask: Any) -> Any:
        """Encode words.

        Parameters
        ----------
        words : Variable of shape (time, batch)
            Letters.
        words_mask : Variable of shape (time, batch)
            0 for padding.

        Returns
        -------
        Variable of shape (time, batch, 2 * dim)
        """
        inputs = self.fork.apply(self.lookup.apply(words), as_dict=True)
        return self.encoder.apply(mask=words_mask, **inputs)

    @application
    def cost(self, words: Any, words_mask: Any, targets: Any, targets_mask: Any) -> Any:
        """Cost of given spellings, in nats a word.

        Parameters
        ----------
        words, targets : Variable of shape (time, batch)
            Letters.
        words_mask, targets_mask : Variable of shape (time, batch)
            0 for padding.

        Returns
        -------
        Variable
            A scalar.
        """
        attended = self.read(words, words_mask)
        return self.generator.cost(
            targets, targets_mask, attended=attended, attended_mask=words_mask
        )

    @application
    def generate(self, words: Any, words_mask: Any) -> Any:
        """Write letters, drawn at random; a search finds the most probable ones.

        Parameters
        ----------
        words, words_mask : Variable of shape (time, batch)
            Letters, and 0 for padding.

        Returns
        -------
        list of Variable
            See `SequenceGenerator.generate`.
        """
        return self.generator.generate(
            n_steps=words.shape[0],
            batch_size=words.shape[1],
            attended=self.read(words, words_mask),
            attended_mask=words_mask,
            as_dict=True,
        )["outputs"]


class WriteWords(SimpleExtension):
    """Write the words of a stream by beam search, and log the share that is right.

    Parameters
    ----------
    search : BeamSearch
        Of the samples of a `WordReverser`.
    stream : AbstractDataStream
        The words.
    **triggers
        When.
    """

    def __init__(self, search: BeamSearch, stream: Any, **triggers: Any) -> None:
        triggers.setdefault("after_epoch", True)
        super().__init__(**triggers)
        self.search, self.stream = search, stream

    def do(self, which_callback: str, *args: Any) -> None:
        """Write all words of the stream, and log ``words_right``."""
        written = [
            pair
            for batch in self.stream.get_epoch_iterator(as_dict=True)
            for pair in write_words(self.search, batch)
        ]
        right = numpy.mean([word[::-1] == found for word, found in written])
        self.main_loop.log.current_row["words_right"] = float(right)


def write_words(search: BeamSearch, batch: dict) -> list[tuple[str, str]]:
    """Write the words of a batch backwards.

    Parameters
    ----------
    search : BeamSearch
        Of the samples of a `WordReverser`.
    batch : dict of str to array
        ``words`` and ``words_mask``, of shape (time, batch).

    Returns
    -------
    list of tuple of str
        Each word, and what was written.
    """
    inputs = {name: batch[name] for name in ("words", "words_mask")}
    found = search.decode(inputs, word_streams.END, max_length=len(batch["words"]) + 2)
    words = [word_streams.decode(list(column)) for column in batch["words"].T]
    written = [word_streams.decode(list(best)) for best in found.best()]
    return list(zip(words, written, strict=True))
