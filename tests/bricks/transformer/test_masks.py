import numpy
import pytest
from aesara import tensor

from bricks.transformer import causal_bias, mask_to_bias, padding_mask

NO = -numpy.inf


def test_a_causal_bias_lets_no_step_see_a_later_one_and_few_before_it():
    assert causal_bias(3).eval().tolist() == [[0, NO, NO], [0, 0, NO], [0, 0, 0]]
    assert causal_bias(3, window=1).eval().tolist() == [[0, NO, NO], [NO, 0, NO], [NO, NO, 0]]
    assert causal_bias(3).dtype == "float32"


@pytest.mark.parametrize("window", [0, -1, 2.5, True])
def test_a_window_in_which_a_step_does_not_see_itself_is_refused(window):
    with pytest.raises(ValueError, match=f"`window` must be an integer from 1.*; got {window!r}"):
        causal_bias(3, window=window)


def test_a_mask_becomes_energies():
    assert mask_to_bias(tensor.constant([[2, 0]])).eval().tolist() == [[0, NO]]


def test_lengths_become_a_mask_with_time_first():
    mask = padding_mask(numpy.array([2, 0, 3]), 3)

    assert mask.eval().tolist() == [[1, 0, 1], [1, 0, 1], [0, 0, 1]]
    assert mask.dtype == "float32"
