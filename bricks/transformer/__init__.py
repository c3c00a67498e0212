"""Transformers: attention of many heads, positions, encoders and decoders, of bricks.

**Axes.** Sequences have the axes (time, batch, feature) and masks (time, batch), 0 for padding, as
for recurrent bricks, so that the two can be combined. Data that comes as (batch, time, feature)
is turned by ``x.dimshuffle(1, 0, 2)``, or by a `Mapping` of the stream. Weights have the axes
(batch, head, query time, key time), states of single steps have the batch as first axis.

**Dropout** is a rewrite of the graph, as everywhere. The usual places::

    graph = ComputationGraph(cost)
    added = VariableFilter(roles=[OUTPUT], applications=[     # what is added to the residuals
        MultiHeadAttention.apply, MultiHeadAttention.apply_preprocessed,
        PositionwiseFeedforward.apply])(graph.variables)
    weights = VariableFilter(roles=[OUTPUT], applications=[MultiHeadAttention.compute_weights])
    graph = apply_dropout(graph, [*added, *weights(graph.variables)], 0.1)

An example that can be trained::

    encoder = TransformerEncoder(
        num_layers=6, prototype=EncoderBlock(num_heads=8), dim=512,
        positions=SinusoidalPositions(),
        weights_init=IsotropicGaussian(0.02), biases_init=Constant(0))
    decoder = TransformerDecoder(
        num_layers=6, prototype=DecoderBlock(num_heads=8), dim=512,
        positions=SinusoidalPositions(),
        weights_init=IsotropicGaussian(0.02), biases_init=Constant(0))
    encoded = encoder.apply(source, source_mask)
    decoded = decoder.apply(target, target_mask, encoded, source_mask)
"""

from bricks.transformer.blocks import DecoderBlock, EncoderBlock
from bricks.transformer.feedforward import GELU, PositionwiseFeedforward, Swish
from bricks.transformer.masks import causal_bias, mask_to_bias, padding_mask
from bricks.transformer.multi_head import MultiHeadAttention
from bricks.transformer.positions import (
    AddedPositions,
    AttentionPositions,
    LearnedPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
)
from bricks.transformer.stacks import TransformerDecoder, TransformerEncoder

__all__ = [
    "AddedPositions",
    "AttentionPositions",
    "DecoderBlock",
    "EncoderBlock",
    "GELU",
    "LearnedPositions",
    "MultiHeadAttention",
    "PositionwiseFeedforward",
    "RelativePositions",
    "RotaryPositions",
    "SinusoidalPositions",
    "Swish",
    "TransformerDecoder",
    "TransformerEncoder",
    "causal_bias",
    "mask_to_bias",
    "padding_mask",
]
