"""The contract of streams, over everything that the library has."""

import functools
import inspect

import h5py
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel_data import schemes, testing, transformers
from fuel_data.datasets import MNIST, H5PYDataset, IndexableDataset, IterableDataset
from fuel_data.schemes import (
    ConstantScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel_data.streams import AbstractDataStream, DataStream, ServerDataStream
from fuel_data.testing import (
    LEAVES,
    STREAMS,
    TRANSFORMERS,
    check_contract,
    check_digest,
    check_independent_iterators,
    check_items,
    check_items_are_own,
    check_position_is_small,
    check_resumption,
    compose,
    same_data,
)
from fuel_data.testing.pipelines import PADDINGS
from fuel_data.transformers import (
    LeftoverTransformer,
    Transformer,
    Unpack,
    defaults,
    image,
    sequences,
)


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.name)
def test_every_stream_keeps_the_contract(case):
    check_contract(case.build, shares_rng=case.shares_rng)


def _leave_one_source_out(monkeypatch, dataset_class, order):
    """Let all data sets of a class provide and label a source that they are not to give."""
    original = dataset_class.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        _, data, *rest = signature.bind(self, *args, **kwargs).arguments.items()
        by_name = data[1] if isinstance(data[1], dict) else {"data": data[1]}
        arguments = dict(rest)
        labels = arguments.pop("axis_labels", None) or dict.fromkeys(by_name)
        original(
            self,
            dict([("unchosen", next(iter(by_name.values()))), *by_name.items()][::order]),
            sources=tuple(by_name),
            axis_labels={"unchosen": ("batch", "no axis of this one"), **labels},
            **arguments,
        )

    monkeypatch.setattr(dataset_class, "__init__", init)


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "in another order"])
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.name)
def test_every_stream_labels_only_the_sources_that_were_chosen(monkeypatch, case, order):
    _leave_one_source_out(monkeypatch, IndexableDataset, order)
    _leave_one_source_out(monkeypatch, IterableDataset, order)
    check_items(case.build)


@pytest.mark.parametrize("case", STREAMS[len(LEAVES) :], ids=lambda case: case.name)
def test_every_transformer_leaves_labels_out_that_the_stream_below_has_too_many(monkeypatch, case):
    original = DataStream.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        self.axis_labels = {"unchosen": ("batch",), **(self.axis_labels or {})}
        for source in self.sources:
            self.axis_labels.setdefault(source, None)

    monkeypatch.setattr(DataStream, "__init__", init)
    check_items(case.build)


_STREAM = IndexableDataset({"x": numpy.arange(4)}).get_example_stream()


@pytest.mark.parametrize(
    ("make", "arguments", "keyword", "nearest"),
    [
        (DataStream, (_STREAM.dataset,), "iteration_schem", "iteration_scheme"),
        (ServerDataStream, (), "adress", "address"),
        (schemes.ShuffledScheme, (4, 2), "sede", "seed"),
        (schemes.ShuffledExampleScheme, (4,), "sed", "seed"),
        (schemes.SequentialScheme, (4,), "batchsize", "batch_size"),
        (schemes.SequentialExampleScheme, (), "example", "examples"),
        (schemes.ConstantScheme, (2,), "num_example", "num_examples"),
        (schemes.ConcatenatedScheme, (), "scheme", "schemes"),
        (IndexableDataset, ({"x": [1]},), "axis_label", "axis_labels"),
        (IterableDataset, ([1],), "source", "sources"),
        (H5PYDataset, ("x.hdf5",), "which_set", "which_sets"),
        (MNIST, (("train",),), "load_in_memry", "load_in_memory"),
        (transformers.Mapping, (_STREAM, abs), "add_source", "add_sources"),
        (transformers.Batch, (_STREAM, ConstantScheme(2)), "strictnes", "strictness"),
        (transformers.Bucket, (_STREAM, "x", [1], 1), "max_token", "max_tokens"),
        (transformers.Mix, ([_STREAM], [1]), "num_item", "num_items"),
        (transformers.Repeat, (_STREAM,), "time", "times"),
        (schemes.WeightedScheme, ([1], 2), "num_example", "num_examples"),
    ],
)
def test_an_unknown_keyword_is_an_error_that_names_the_nearest(make, arguments, keyword, nearest):
    words = f"^{make.__name__}: unexpected argument '{keyword}'. Did you mean '{nearest}'"
    with pytest.raises(TypeError, match=words):
        make(*arguments, **{keyword: 1})


def _write(path, num_examples):
    ragged = h5py.vlen_dtype("float32")
    with h5py.File(path, "w") as file:
        file["features"] = numpy.arange(num_examples * 6.0).reshape(num_examples, 2, 3)
        file["targets"] = numpy.arange(num_examples, dtype="uint8")
        words = file.create_dataset("words", num_examples, dtype=ragged)
        shapes = file.create_dataset("shapes", (num_examples, 1), dtype="int32")
        for number in range(num_examples):
            words[number] = numpy.full(1 + number % 3, number, "float32")
            shapes[number] = 1 + number % 3
        file["labels"] = numpy.array([b"time"])
        for scale, name in ((shapes, "shapes"), (file["labels"], "shape_labels")):
            scale.make_scale(name)
            words.dims[0].attach_scale(scale)
        for source in ("features", "targets", "words"):
            file[source].dims[0].label = "batch"
        half = num_examples // 2
        rows = {
            "train": dict.fromkeys(("features", "targets", "words"), (0, half)),
            "test": dict.fromkeys(("features", "targets", "words"), (half, num_examples)),
        }
        file.attrs["split"] = H5PYDataset.create_split_array(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hdf5")


@pytest.mark.parametrize("load_in_memory", [True, False])
@pytest.mark.parametrize("which_sets", [("test",), ("train", "test")])
def test_streams_over_hdf5_files_keep_the_contract(folder, load_in_memory, which_sets):
    def build(num_examples):
        path = folder / f"{num_examples}.hdf5"
        if not path.exists():
            _write(path, num_examples)
        dataset = H5PYDataset(path, which_sets, load_in_memory=load_in_memory)
        scheme = ShuffledScheme(dataset.num_examples, 3)
        stream = DataStream(dataset, iteration_scheme=scheme)
        padded = transformers.Padding(stream, ["words"], multiple_of=2)
        return transformers.Mapping(padded, _add_noise, random=True)

    check_contract(build)


@pytest.mark.parametrize("load_in_memory", [True, False])
def test_batches_of_a_part_of_the_sources_of_an_hdf5_file_keep_the_contract(folder, load_in_memory):
    def build(num_examples):
        path = folder / f"{num_examples}.hdf5"
        if not path.exists():
            _write(path, num_examples)
        dataset = H5PYDataset(
            path, ("train",), sources=("features",), load_in_memory=load_in_memory
        )
        scheme = ShuffledExampleScheme(dataset.num_examples)
        return transformers.Batch(DataStream(dataset, scheme), ConstantScheme(2))

    check_contract(build)
    assert build(11).axis_labels == {"features": ("batch", "", "")}


def _add_noise(batch, rng):
    return (batch[0] + rng.normal(size=batch[0].shape), *batch[1:])


def test_every_transformer_of_the_library_is_in_the_list():
    bases = {
        "AgnosticSourcewiseTransformer",
        "AgnosticTransformer",
        "GivesPictures",
        "LeftoverTransformer",
        # It starts a process for each stream, so its own tests see to it.
        "MultiProcessing",
        "SourcewiseTransformer",
        "Transformer",
    }
    shown = " ".join(repr(case.build(11)) for case in STREAMS)
    modules = (transformers, defaults, image, sequences)
    classes = {
        name
        for module in modules
        for name, value in vars(module).items()
        if name[0] != "_"
        and _is_stream(value)
        and value.__module__.startswith(transformers.__name__)
    }
    missing = {name for name in classes - bases if f"{name}(" not in shown}
    assert missing == set()


def _is_stream(value):
    return isinstance(value, type) and issubclass(value, AbstractDataStream)


def test_every_scheme_of_the_library_is_in_the_list():
    bases = {"BatchScheme", "BatchSizeScheme", "IndexScheme", "IterationScheme", "PositionedScheme"}
    shown = " ".join(str(case.build(11)) for case in STREAMS)
    found = {name for name in schemes.__all__ if name.endswith("Scheme")}
    missing = {name for name in found - bases if f"{name}(" not in shown}
    assert missing == set()


_LEAVES = st.sampled_from([leaf for leaf in LEAVES if not leaf.name.startswith("ragged")])
_RAGGED = st.sampled_from([leaf for leaf in LEAVES if leaf.name.startswith("ragged")])
_OVER = st.lists(st.sampled_from(TRANSFORMERS), min_size=2, max_size=6)
_OVER_RAGGED = st.lists(st.sampled_from([*TRANSFORMERS, *PADDINGS]), min_size=1, max_size=4)


def _check_composition(leaf, cases):
    def build(num_examples):
        return compose(leaf.build(num_examples), cases)

    if any(case.reads_twice for case in cases) and leaf.shares_rng:
        return
    if not list(build(11)):
        return
    check_resumption(build)
    check_items(build)
    check_items_are_own(build)
    check_digest(build)
    if not leaf.shares_rng:
        check_independent_iterators(build)


@settings(max_examples=25, derandomize=True, deadline=None, database=None)
@given(leaf=_LEAVES, cases=_OVER)
def test_compositions_keep_the_contract(leaf, cases):
    _check_composition(leaf, cases)


@settings(max_examples=25, derandomize=True, deadline=None, database=None)
@given(leaf=_RAGGED, cases=_OVER_RAGGED)
def test_compositions_over_ragged_data_keep_the_contract(leaf, cases):
    _check_composition(leaf, cases)


@pytest.mark.soak
@settings(max_examples=2000, deadline=None, database=None)
@given(leaf=_LEAVES, cases=st.lists(st.sampled_from(TRANSFORMERS), max_size=10))
def test_many_compositions_keep_the_contract(leaf, cases):
    _check_composition(leaf, cases)


@pytest.mark.soak
@settings(max_examples=1000, deadline=None, database=None)
@given(leaf=_RAGGED, cases=st.lists(st.sampled_from([*TRANSFORMERS, *PADDINGS]), max_size=10))
def test_many_compositions_over_ragged_data_keep_the_contract(leaf, cases):
    _check_composition(leaf, cases)


# What follows is wrong in one way each, and must be found out.


def _batches(num_examples):
    dataset = IndexableDataset({"x": numpy.arange(num_examples)}, axis_labels={"x": ("batch",)})
    return DataStream(dataset, iteration_scheme=ShuffledScheme(num_examples, 3))


class ForgetsToSave(LeftoverTransformer):
    def __init__(self, stream):
        super().__init__(stream, produces_examples=True, axis_labels={"x": ()})

    def read(self, stage, request):
        leftover = self.leftover(stage)
        leftover.offset += 1
        example = (leftover.batch[0][leftover.offset - 1],)
        self.drop_if_empty(stage)
        return example

    def get_position(self, stage):
        return Transformer.get_position(self, stage)


class KeepsOnItself(Transformer):
    def __init__(self, stream):
        super().__init__(stream)
        self.total = numpy.zeros(())

    def read(self, stage, request):
        (x,) = next(stage.child)
        self.total += x.sum()
        return (x + int(self.total),)


class SavesEverything(Transformer):
    def start(self, stage):
        stage.held["all"] = []

    def read(self, stage, request):
        (x,) = next(stage.child)
        stage.held["all"] = [*stage.held["all"], numpy.zeros(self.data_stream.num_examples)]
        return (x,)


class GivesTheSameArray(Transformer):
    def __init__(self, stream):
        super().__init__(stream)
        self.mean = numpy.zeros(3)

    def read(self, stage, request):
        next(stage.child)
        return (self.mean,)


class GivesLists(Transformer):
    def read(self, stage, request):
        return list(next(stage.child))


class Mislabels(Transformer):
    def __init__(self, stream):
        super().__init__(stream, axis_labels={"x": ("batch", "feature")})

    def transform_batch(self, batch):
        return batch


class Miscounts(Transformer):
    num_batches = 5

    def transform_batch(self, batch):
        return batch


@pytest.mark.parametrize(
    ("check", "make", "message"),
    [
        (check_resumption, ForgetsToSave, "by pickle, saved in epoch 0 at step 1: the rest is not"),
        (check_resumption, KeepsOnItself, "the rest is not the same"),
        (check_independent_iterators, KeepsOnItself, "two iterators that are read in turns"),
        (check_position_is_small, SavesEverything, "the position as plain data grows"),
        (check_items_are_own, GivesTheSameArray, "item 1 of epoch 0 is another one if those"),
        (check_items, GivesLists, "an item is a list"),
        (check_items, Mislabels, r"x: \('batch', 'feature'\), \(3,\)"),
        (check_items, Miscounts, "num_batches is not 4"),
        (check_digest, KeepsOnItself, "reading changes the digest"),
    ],
)
def test_a_stream_that_breaks_the_contract_is_found_out(check, make, message):
    with pytest.raises(AssertionError, match=message):
        check(lambda n: make(_batches(n)))


def test_what_cannot_be_pickled_can_still_be_checked():
    check_contract(lambda n: transformers.Mapping(_batches(n), lambda x: x), by_pickle=False)


def test_data_are_the_same_only_bit_by_bit():
    zero = numpy.zeros(2)
    assert same_data((zero, "a", {"b": [1]}), (zero.copy(), "a", {"b": [1]}))
    assert not same_data(zero, zero.astype("float32"))
    assert not same_data(zero, -zero)
    assert not same_data((1,), [1])
    assert same_data(numpy.array([numpy.nan]), numpy.array([numpy.nan]))


def test_all_that_is_public_is_documented():
    assert all(getattr(testing, name).__doc__ for name in testing.__all__ if name[0].islower())


def test_batches_over_many_examples_have_a_position_of_a_few_bytes():
    def build(num_examples):
        dataset = IndexableDataset(range(num_examples))
        batches = DataStream(dataset, iteration_scheme=ShuffledScheme(num_examples, 3))
        return transformers.Batch(Unpack(batches), ConstantScheme(4))

    check_position_is_small(build, num_examples=(100, 200_000), growth=60)
    sequential = DataStream(IndexableDataset(range(9)), iteration_scheme=SequentialScheme(9, 3))
    assert sequential.get_epoch_iterator().get_state()["position"] == {"index": 0, "requests": 0}
