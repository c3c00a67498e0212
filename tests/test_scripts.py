"""The scripts that set environments up say what they would install, and what is wrong."""

import importlib.util
import os
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def modern_requirements(extras):
    path = CHECKOUT / "scripts/modern_requirements.py"
    spec = importlib.util.spec_from_file_location("modern_requirements", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.modern_requirements(extras)


def test_the_modern_stack_lifts_the_bounds_of_aesara_and_keeps_all_others():
    requirements = modern_requirements(["test"])

    assert {"numpy>=2", "scipy", "jax>=0.8.3"} < set(requirements)
    assert {"setuptools<82", "setuptools>=70.1", "picklable-itertools==0.1.1"} < set(requirements)
    assert not any(line.startswith(("aesara", "firebrick")) for line in requirements)
    assert {"cons", "etuples", "pytest"} < set(requirements)
    assert "pytest" not in modern_requirements([])


def run(script, *arguments, **settings):
    return subprocess.run(
        ["bash", "-c", script, "bash", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )


def fake_python(folder, name, answer):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)
    return path


FIND = "source scripts/environment.sh; find_python 3.11 3.12"


def test_a_python_is_found_behind_one_that_fails(tmp_path):
    fake_python(tmp_path / "shims", "python3.11", "exit 127")
    good = fake_python(tmp_path / "good", "python3.12", 'case "$2" in *print*) echo 3.12;; esac')

    found = run(FIND, PATH=f"{tmp_path}/shims:{tmp_path}/good:{only_tools(tmp_path)}")

    assert found.stdout.strip() == str(good)


def test_a_python_of_pyenv_is_found_where_none_is_on_the_path(tmp_path):
    folder = tmp_path / "versions/3.11.9/bin"
    folder.mkdir(parents=True)
    good = fake_python(folder, "python", 'case "$2" in *print*) echo 3.11;; esac')

    found = run(FIND, PATH=only_tools(tmp_path), PYENV_ROOT=str(tmp_path))

    assert found.stdout.strip() == str(good)


def only_tools(folder):
    """A path with what the scripts call and no Python."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("dirname", "ls", "cat", "bash"):
        for place in os.environ["PATH"].split(os.pathsep):
            if os.path.exists(os.path.join(place, name)):
                (tools / name).symlink_to(os.path.join(place, name))
                break
    return str(tools)


def test_without_a_python_it_is_said_how_to_get_one(tmp_path):
    missing = run(FIND, PATH=only_tools(tmp_path), PYENV_ROOT=str(tmp_path))

    assert missing.returncode == 1
    assert "no Python 3.11 or 3.12 was found. Debian 12: apt-get install python3" in missing.stderr


def test_without_venv_it_is_said_which_package_brings_it(tmp_path):
    answer = 'case "$2" in *print*) echo 3.11;; *) exit 1;; esac'
    fake_python(tmp_path / "bin", "python3.11", answer)

    missing = run(FIND, PATH=f"{tmp_path}/bin:{only_tools(tmp_path)}", PYENV_ROOT=str(tmp_path))

    assert missing.returncode == 1
    assert "apt-get install python3.11-venv" in missing.stderr
