"""Importing bricks leaves an Aesara that is set up, on old and new numpy."""

import subprocess
import sys

import pytest

from bricks.aesara_setup import merge_flags


def run_python(code, **environment):
    """Run code in a fresh interpreter in which every warning is an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "", **environment},
        timeout=120,
        check=False,
    )


def test_the_defaults_are_added_to_no_flags():
    assert merge_flags("") == "floatX=float32,cxx=,blas__ldflags="


def test_a_flag_of_the_user_wins_over_its_default():
    assert merge_flags("floatX=float64,mode=FAST_COMPILE") == (
        "cxx=,blas__ldflags=,floatX=float64,mode=FAST_COMPILE"
    )


def test_aesara_computes_in_float32_without_a_compiler_and_without_a_warning():
    result = run_python(
        "import bricks, aesara; import aesara.tensor as tensor; x = tensor.matrix();"
        "print(aesara.config.floatX, repr(aesara.config.cxx));"
        "print(aesara.function([x], tensor.sqr(x).mean(0))([[1, 2], [3, 4]]))"
    )

    assert result.stderr == ""
    assert result.stdout.split("\n")[:2] == ["float32 ''", "[ 5. 10.]"]


def test_the_users_flags_reach_aesara():
    result = run_python(
        "import bricks, aesara; print(aesara.config.floatX)", AESARA_FLAGS="floatX=float64"
    )

    assert result.stdout == "float64\n"


def test_an_aesara_that_came_first_in_float64_is_told():
    code = (
        "import os, importlib.util, warnings\n"
        "spec = importlib.util.spec_from_file_location('setup', 'bricks/aesara_setup.py')\n"
        "setup = importlib.util.module_from_spec(spec); spec.loader.exec_module(setup)\n"
        "os.environ['AESARA_FLAGS'] = 'cxx=,blas__ldflags='\n"
        "with warnings.catch_warnings():\n"
        "    warnings.simplefilter('ignore')\n"
        "    setup.provide_numpy_names()\n"
        "    import aesara\n"
        "import bricks\n"
    )

    result = run_python(code)

    assert "aesara was imported before bricks and so computes in float64" in result.stderr


@pytest.mark.parametrize("name", ["sqr", "inv", "abs_", "Rop", "Lop", "unbroadcast", "nnet"])
def test_a_name_that_theano_had_is_there(name):
    import aesara.tensor as tensor

    assert getattr(tensor, name) is not None


def test_a_graph_can_be_cloned_under_the_name_that_theano_had():
    import aesara
    import aesara.tensor as tensor

    x, y = tensor.scalar("x"), tensor.scalar("y")

    assert aesara.clone(tensor.exp(x), replace={x: y}).owner.inputs == [y]


def test_gradients_that_numpy_2_refuses_are_mended():
    code = """
import bricks, bricks.xla, aesara, numpy
from aesara import tensor
x = tensor.dvector()
outputs = [tensor.deg2rad(x), tensor.rad2deg(x), aesara.gradient.zero_grad(x)]
slopes = [aesara.grad(output.sum(), x) for output in outputs]
first, second, third = bricks.xla.function([x], slopes)(numpy.ones(1))
numpy.testing.assert_allclose([first[0] * 180, second[0] / 180], [numpy.pi, 1 / numpy.pi])
assert third == 0
"""
    result = run_python(code, JAX_PLATFORMS="cpu")

    assert result.returncode == 0, result.stderr
