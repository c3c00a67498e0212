"""The training steps that are timed lower for CUDA, on a machine that has none."""

import configparser
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def load_models():
    path = ROOT / "scripts/benchmarks/models.py"
    spec = importlib.util.spec_from_file_location("timed_models", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.MODELS


@pytest.mark.parametrize("model", load_models(), ids=lambda model: model.name)
def test_the_training_step_of_each_timed_model_lowers_for_cuda(model):
    step, batch = model.build(small=True)

    exported = step.export_for("cuda", *batch)

    assert exported.platforms == ("cuda",)
    parameters = [value for value in exported.in_avals if str(value.dtype) == "float32"]
    # The new parameters come before the cost: CUDA has overwritten what is given up too early.
    assert exported.out_avals[-1].shape == ()
    assert [out.shape for out in exported.out_avals[:-1]] == [
        value.shape for value in parameters[: len(exported.out_avals) - 1]
    ]
    assert "donated" in exported.mlir_module() or "aliasing_output" in exported.mlir_module()


def test_the_extra_for_cuda_asks_for_the_same_releases_of_jax():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    required = config["options"]["install_requires"].split("\n")
    (plain,) = (line for line in required if line.startswith("jax "))
    (extra,) = config["options.extras_require"]["cuda"].strip().split("\n")

    assert extra == plain.replace("jax ", "jax[cuda12] ")
