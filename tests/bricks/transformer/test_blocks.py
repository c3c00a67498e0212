import numpy
import pytest
from aesara import tensor

from bricks import xla
from bricks.filter import VariableFilter
from bricks.graph import ComputationGraph
from bricks.initialization import Constant, IsotropicGaussian
from bricks.normalization import RMSNormalization
from bricks.roles import OUTPUT
from bricks.transformer import (
    DecoderBlock,
    EncoderBlock,
    MultiHeadAttention,
    PositionwiseFeedforward,
)

SCHEMES = {"weights_init": IsotropicGaussian(0.5), "biases_init": Constant(0)}
X = numpy.random.RandomState(0).standard_normal((3, 2, 4)).astype("float32")


def test_what_is_added_to_the_residuals_is_found_and_replaced_by_application():
    block, x = EncoderBlock(num_heads=2, dim=4, **SCHEMES), tensor.tensor3("x")
    block.initialize()
    graph = ComputationGraph(block.apply(x))
    find = VariableFilter(
        roles=[OUTPUT], applications=[MultiHeadAttention.apply, PositionwiseFeedforward.apply]
    )
    added = find(graph.variables)

    (without,) = graph.replace({one: tensor.zeros_like(one) for one in added}).outputs

    assert [one.name for one in added] == ["attention_apply_output", "feedforward_apply_output"]
    numpy.testing.assert_array_equal(xla.function([x], without)(X), X)


def test_settings_reach_the_parts():
    block = DecoderBlock(
        num_heads=2,
        dim=4,
        attended_dim=3,
        use_bias=False,
        norm=RMSNormalization(epsilon=0.5),
        weights_init=IsotropicGaussian(),
    )
    block.initialize()

    assert block.feedforward.hidden.W.get_value().shape == (4, 16)
    assert block.cross_attention.key.W.get_value().shape == (3, 4)
    norms = (block.attention_norm, block.cross_attention_norm, block.feedforward_norm)
    assert [norm.epsilon for norm in norms] == [0.5] * 3
    assert not block.attention.query.use_bias and not block.feedforward.output.use_bias
    assert block.get_dims(["input_", "attended", "keys", "mask"]) == [4, 3, 4, 0]


def test_a_decoder_block_says_whether_it_attends():
    x = tensor.tensor3("x")

    with pytest.raises(TypeError, match=r"/decoderblock\.apply: `attended` must be given\. Make"):
        DecoderBlock(num_heads=2, dim=4).apply(x)
    with pytest.raises(TypeError, match="`attended` is given, but the block was made with attends"):
        DecoderBlock(num_heads=2, dim=4, attends=False).apply(x, attended=x)
    alone = DecoderBlock(num_heads=2, dim=4, attends=False)
    with pytest.raises(TypeError, match=r"apply: `attended_mask` is given, but the block was made"):
        alone.apply(x, attended_mask=x[0])
    with pytest.raises(TypeError, match=r"step: `attended_mask` is given, but the block was made"):
        alone.step(x[0], x, x, tensor.lvector(), attended_mask=x[0])
    with pytest.raises(ValueError, match=r"step: `input_` must have the axes \(batch, feature\), "):
        DecoderBlock(num_heads=2, dim=4, attends=False).step(x, x, x, tensor.lvector())


def test_an_encoder_block_tells_the_features_of_all_its_inputs():
    block = EncoderBlock(num_heads=2, dim=4)

    assert block.get_dims(block.apply.inputs) == [4, 0, 0]
