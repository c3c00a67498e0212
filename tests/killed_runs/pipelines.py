"""Streams for runs that are killed; their server imports this file, and no compiler."""

import numpy

from fuel_data.datasets import H5PYDataset
from fuel_data.schemes import ConstantScheme, SequentialScheme, ShuffledScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Batch, Cache, Cast, Filter, Mapping, Padding, Unpack


def mirror(batch, rng):
    """Turn the features of some examples around."""
    features, targets, words = batch
    turned = rng.random(len(features)) < 0.5
    return numpy.where(turned[:, numpy.newaxis], features[:, ::-1], features), targets, words


def rises(example):
    """Tell whether the first feature is not far above the last one, which `mirror` may change."""
    features, _, _ = example
    return int(features[0]) < int(features[-1]) + 200


def add_noise(example, rng):
    """Add noise to the words."""
    features, targets, words = example
    return features, targets, (words + rng.normal(size=words.shape)).astype("float32")


def train(path, load_in_memory, seed):
    """Shuffled batches of 8 that every kind of buffer and of random function has worked on."""
    dataset = H5PYDataset(
        path,
        which_sets=("train",),
        sources=("features", "targets", "words"),
        load_in_memory=load_in_memory,
    )
    scheme = ShuffledScheme(dataset.num_examples, 5, seed=seed)
    mirrored = Mapping(DataStream(dataset, iteration_scheme=scheme), mirror, random=True, seed=seed)
    kept = Filter(Unpack(mirrored), rises)
    noisy = Mapping(kept, add_noise, random=True, seed=seed)
    batches = Cache(Batch(noisy, ConstantScheme(12), strictness=1), ConstantScheme(8))
    padded = Padding(batches, mask_sources=("words",), multiple_of=4)
    return Cast(padded, "float32", which_sources=("features", "words", "words_mask"))


def test(path, seed):
    """The test examples in order, with noise that differs from one evaluation to the next."""
    dataset = H5PYDataset(
        path, which_sets=("test",), sources=("features", "targets", "words"), load_in_memory=True
    )
    scheme = SequentialScheme(dataset.num_examples, 8)
    examples = Unpack(DataStream(dataset, iteration_scheme=scheme))
    noisy = Batch(Mapping(examples, add_noise, random=True, seed=seed), ConstantScheme(8))
    padded = Padding(noisy, mask_sources=("words",), multiple_of=4)
    return Cast(padded, "float32", which_sources=("features", "words", "words_mask"))
