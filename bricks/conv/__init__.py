"""Convolutions and poolings over one to three axes, and sequences of them.

The first two axes of their inputs are the batch and the channels; behind them come time, or
height and width, or depth, height and width.
"""

from bricks.conv.convolution import Convolutional, ConvolutionalTranspose
from bricks.conv.pooling import AveragePooling, MaxPooling, Pooling
from bricks.conv.sequences import ConvolutionalSequence, Flattener

__all__ = [
    "AveragePooling",
    "Convolutional",
    "ConvolutionalSequence",
    "ConvolutionalTranspose",
    "Flattener",
    "MaxPooling",
    "Pooling",
]
