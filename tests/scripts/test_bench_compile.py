"""The benchmark of compiled steps compares like with like, and runs."""

import importlib
import math
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

BENCHMARKS = Path(__file__).parents[2] / "scripts/benchmarks"
MODELS = ["mlp", "lstm", "lstm by hand", "attention", "conv", "transformer", "embedding"]


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmark, as the programs there do."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = {path.stem for path in BENCHMARKS.glob("*.py")}
    yield importlib.import_module
    for name in names & set(sys.modules):
        if Path(sys.modules[name].__file__ or "").parent == BENCHMARKS:
            del sys.modules[name]


def test_the_models_learn_in_jax_by_hand_what_they_learn_in_bricks(load):
    models, in_jax = load("models"), load("in_jax")
    by_name = {model.name: model for model in models.MODELS}
    ours = {}

    for title in MODELS:
        name = title.partition(" ")[0]
        model = by_name[name]
        if name not in ours:
            step, batch = model.build(small=True)
            ours[name] = [float(step(*batch)) for _ in range(3)]
        parameters, batch = model.arrays(small=True)
        step = in_jax.Step(title, model.small_sizes, parameters, batch, "cpu")

        numpy.testing.assert_allclose([step(batch) for _ in range(3)], ours[name], rtol=2e-5)
        assert ours[name][2] < ours[name][0]


def test_the_quick_mode_compares_a_model_without_pytorch():
    command = [sys.executable, str(BENCHMARKS / "compile.py"), "--quick", "--rst", "--no-torch"]
    options = ["--models", "mlp", "--stacks", "default", "--repetitions", "2"]

    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    machine, *_ = done.stdout.splitlines()
    assert "cores" in machine and "jax" in machine
    (times,) = (line for line in done.stdout.splitlines() if "MLP" in line and "+" not in line)
    title, stack, ours, theirs, ratio, *others = times.rsplit(maxsplit=8)
    assert (title, stack, others) == ("MLP 784-500-500-10, batch 128", "default", ["–"] * 4)
    assert math.isclose(float(ratio), float(ours) / float(theirs), rel_tol=0.05)
    assert "rewriting the graph" in done.stdout


def test_implementations_that_compute_different_things_are_refused(load):
    program, models = load("compile"), load("models")
    ours = program.Contestant("firebrick", "default", "in_bricks", "mlp")
    theirs = program.Contestant("JAX", "default", "in_jax", "mlp")
    results = {
        ours: program.Result([], {"costs": [2.0, 1.0]}),
        theirs: program.Result([], {"costs": [2.0, 1.1]}),
    }

    with pytest.raises(SystemExit, match="mlp: the costs of the first steps must agree; firebrick"):
        program.check_costs(models.MODELS[0], results)


def test_what_could_not_be_built_is_said_in_its_place(load):
    program = load("compile")
    contestants = [
        program.Contestant("firebrick", "default", "in_bricks", "mlp"),
        program.Contestant("JAX", "default", "in_jax", "mlp"),
        program.Contestant("PyTorch compiled", "torch", "in_torch", "mlp compiled"),
    ]
    results = [
        program.Result([0.002, 0.004, 0.003], {}),
        program.Result([0.002], {}),
        program.Result([], {}, "no C compiler was found"),
    ]
    measured = {"an MLP": dict(zip(contestants, results, strict=True))}

    _, row = program.time_rows(measured, ["default"])

    assert row == [
        "an MLP",
        "default",
        "3.00",
        "2.00",
        "1.50",
        "–",
        "–",
        "failed",
        "–",
    ]
    assert "PyTorch compiled, torch, failed on an MLP: no C compiler" in program.failures(measured)
    table = program.render([["a", "b"], ["1", "22"]], rst=True)
    assert table == "=  ==\na  b\n=  ==\n1  22\n=  ==\n"
