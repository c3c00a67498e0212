"""What bricks have in common: seeds, schemes of initialization, checks of dimensions."""

import copy
import logging
import pickle
import subprocess
import sys

import numpy
import pytest
from aesara import tensor

from bricks.base import Brick, lazy
from bricks.config import config
from bricks.initialization import Constant, IsotropicGaussian
from bricks.interfaces import (
    Activation,
    Feedforward,
    Initializable,
    LinearLike,
    Random,
    RNGMixin,
    check_last_dim,
    derive_seed,
)
from bricks.utils import shared_floatx_nans


class Affine(LinearLike, Feedforward):
    @lazy(allocation=["input_dim", "output_dim"])
    def __init__(self, input_dim, output_dim, **kwargs):
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = input_dim, output_dim

    def _allocate(self):
        self.parameters.append(shared_floatx_nans((self.input_dim, self.output_dim), name="W"))
        if self.use_bias:
            self.parameters.append(shared_floatx_nans((self.output_dim,), name="b"))


class Stack(Initializable):
    pass


class Plain(Brick):
    pass


class Lookup(Affine):
    has_biases = False


class Noisy(Random, Initializable):
    pass


def affine(name="affine", **kwargs):
    kwargs.setdefault("weights_init", IsotropicGaussian())
    kwargs.setdefault("biases_init", IsotropicGaussian())
    return Affine(2, 3, name=name, **kwargs)


def weights(brick):
    brick.initialize()
    return brick.W.get_value()


def test_seeds_do_not_depend_on_bricks_made_before_or_beside():
    alone = Stack(children=[affine("two")], name="stack")
    affine("other").initialize()
    crowded = Stack(children=[affine("one"), affine("two")], name="stack")
    crowded.children[0].initialize()

    numpy.testing.assert_array_equal(weights(alone.children[0]), weights(crowded.children[1]))


def test_bricks_of_different_names_draw_different_numbers():
    stack = Stack(children=[affine("one"), affine("two")])

    assert (weights(stack.children[0]) != weights(stack.children[1])).all()


def test_seeds_are_the_same_in_every_process_whatever_its_hash_seed():
    code = (
        "from bricks.interfaces import RNGMixin, derive_seed\n"
        "inner = RNGMixin(name='inner')\n"
        "outer = RNGMixin(name='outer', children=[inner])\n"
        "print(derive_seed(1, 'a', 'b'), outer.seed, inner.seed)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }

    inner = RNGMixin(name="inner")
    outer = RNGMixin(name="outer", children=[inner])
    assert seen == {f"{derive_seed(1, 'a', 'b')} {outer.seed} {inner.seed}\n"}


def test_the_first_seed_of_the_configuration_is_pinned():
    # Changing the hash would change every model that was ever drawn.
    assert derive_seed(1, "initialization", "mlp", "linear_0") == 1153466636


def test_children_of_one_name_are_told_apart_by_their_number():
    one, two = RNGMixin(name="same"), RNGMixin(name="same")
    Plain(children=[one, two])

    assert one.seed != two.seed
    assert one.seed == _seed_of_only_child("same")


def _seed_of_only_child(name):
    child = RNGMixin(name=name)
    Plain(children=[child])
    return child.seed


def test_a_given_seed_reaches_the_children_wherever_the_brick_stands():
    def build(seed):
        child = RNGMixin(name="child")
        return RNGMixin(name="parent", seed=seed, children=[child]), child

    parent, child = build(5)
    _, other = build(6)
    _, same = build(5)
    before = child.seed
    Plain(children=[parent], name="above")

    assert parent.seed == 5
    assert child.seed == before == same.seed
    assert child.seed != other.seed


def test_the_seed_can_be_set_until_the_generator_is_used():
    brick = RNGMixin()

    brick.seed = 3
    brick.seed = 4
    expected = numpy.random.RandomState(4).uniform()
    assert brick.rng.uniform() == expected
    with pytest.raises(ValueError, match="/rngmixin: `seed` cannot be set any more"):
        brick.seed = 5


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_seeds_that_are_no_integers_from_zero_are_refused(seed):
    with pytest.raises(ValueError, match="/rngmixin: `seed` must be an integer from 0"):
        RNGMixin(seed=seed)


def test_the_default_seed_of_the_configuration_changes_the_numbers(monkeypatch):
    brick = RNGMixin(name="one")
    before = brick.seed

    monkeypatch.setattr(config, "default_seed", config.default_seed + 1)

    assert brick.seed != before


def test_two_top_bricks_of_one_name_are_noted(caplog):
    one, two = RNGMixin(name="a_name_of_two"), RNGMixin(name="a_name_of_two")

    with caplog.at_level(logging.WARNING):
        assert one.seed == two.seed

    assert "Two top bricks are named 'a_name_of_two'" in caplog.text


def test_the_generator_pickles_with_its_position():
    brick = RNGMixin()
    brick.rng.uniform()

    clone = pickle.loads(pickle.dumps(brick))

    assert clone.rng.uniform() == brick.rng.uniform()
    assert copy.deepcopy(brick).rng.uniform() == brick.rng.uniform()


def test_a_given_generator_is_pushed_to_children_without_one_of_their_own():
    one, two = affine("one"), affine("two", seed=3)
    stack = Stack(children=[one, two])
    stack.rng = numpy.random.RandomState(9)

    stack.push_initialization_config()

    assert one.rng is stack.rng
    assert two.seed == 3
    assert two.rng is not stack.rng


def test_initializing_again_draws_other_numbers():
    brick = affine()

    first = weights(brick)

    assert (weights(brick) != first).all()


def test_schemes_are_pushed_to_children_and_can_be_overridden():
    one, two = Affine(2, 3, name="one"), Affine(2, 3, name="two")
    stack = Stack(children=[one, two], weights_init=Constant(1), biases_init=Constant(2))

    stack.push_initialization_config()
    two.weights_init = Constant(5)
    stack.initialize()

    assert (one.W.get_value() == 1).all()
    assert (one.b.get_value() == 2).all()
    assert (two.W.get_value() == 5).all()


def test_a_missing_scheme_is_named_with_path_parameter_and_way_out():
    stack = Stack(children=[Affine(2, 3, biases_init=Constant(0))])

    with pytest.raises(
        ValueError, match="/stack/affine cannot be initialized: `weights_init` must be.*'W'.*pare"
    ):
        stack.initialize()


def test_a_scheme_that_cannot_draw_the_shape_is_named_with_the_parameter():
    brick = Affine(2, 3, weights_init=Constant(numpy.zeros(7)), biases_init=Constant(0))

    with pytest.raises(
        ValueError, match=r"/affine.W by `weights_init`: Constant.*\(7,\).*\(2, 3\)"
    ):
        brick.initialize()


def test_bricks_without_biases_refuse_them_and_hand_their_scheme_to_children():
    brick = Lookup(2, 3, weights_init=Constant(1))
    brick.initialize()

    assert len(brick.parameters) == 1
    assert not brick.use_bias
    Stack(children=[brick], biases_init=Constant(1), weights_init=Constant(2)).initialize()
    with pytest.raises(ValueError, match="Lookup .* has no biases: leave out `use_bias`"):
        Lookup(2, 3, use_bias=True)
    child = Affine(2, 3)
    parent = Lookup(2, 3, weights_init=Constant(1), biases_init=Constant(5), children=[child])
    parent.initialize()
    assert len(parent.parameters) == 1
    assert child.b.get_value().tolist() == [5, 5, 5]


def test_use_bias_false_leaves_the_biases_out():
    brick = Affine(2, 3, use_bias=False, weights_init=Constant(1))
    brick.initialize()

    assert len(brick.parameters) == 1
    with pytest.raises(AttributeError, match="/affine has no biases: use_bias is False"):
        _ = brick.b


def test_feedforward_hides_no_attribute_error():
    class Broken(Feedforward):
        @property
        def output_dim(self):
            return self.not_there

    with pytest.raises(AttributeError, match="not_there"):
        _ = Broken().output_dim


def test_activations_document_themselves():
    class Cube(Activation):
        pass

    assert Cube.__doc__ == "Apply the cube function to each element."


@pytest.mark.parametrize("shape", [(None, 3), (None, None), (3,), ()])
def test_a_last_axis_that_fits_or_is_not_known_is_accepted(shape):
    check_last_dim(affine(), tensor.tensor("float32", shape=shape), 3)


def test_a_last_axis_of_another_length_is_refused_in_words():
    x = tensor.tensor("float32", shape=(None, 4), name="x")

    with pytest.raises(
        ValueError,
        match=r"/affine.apply: `input_` must have 3 features.*got x of shape \('\?', 4\)",
    ):
        check_last_dim(affine(), x, 3)


def test_random_streams_have_the_path_as_name_and_a_seed_of_their_own():
    brick = Noisy(name="noisy")
    Plain(children=[brick], name="top")
    brick.theano_rng.uniform(size=(2,))

    (key,) = brick.theano_rng.keys
    assert key.name == "/top/noisy.0"
    assert brick.theano_seed != brick.seed
    with pytest.raises(ValueError, match="/top/noisy: `theano_seed` cannot be set any more"):
        brick.theano_seed = 3
    other = Noisy(theano_seed=4)
    assert other.theano_seed == 4
