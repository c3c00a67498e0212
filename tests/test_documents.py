"""The README and the tutorial do what they say: their files and commands are run, in order."""

import doctest
import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import docutils.core
import pytest

import fuel_data.datasets
from fuel_data.converters import all_converters

CHECKOUT = Path(__file__).parents[1]
_BLOCK = re.compile(
    r"^\.\. code-block:: (?P<language>python|console)\n"
    r"(?:   +:name: (?P<name>\S+)\n)?"
    r"\n(?P<content>(?:(?:   .*)?\n)+)",
    re.MULTILINE,
)


def blocks(document: str):
    """The code blocks of a document, dedented: (language, name, content)."""
    text = (CHECKOUT / document).read_text()
    for match in _BLOCK.finditer(text):
        yield match["language"], match["name"], textwrap.dedent(match["content"]).strip("\n") + "\n"


def run(command: str, folder: Path, **settings: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    finished = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, f"{command}\n{finished.stdout}\n{finished.stderr}"
    return finished.stdout


@pytest.mark.parametrize("document", ["docs/tutorial.rst", "docs/datasets.rst"])
def test_the_documents_do_what_they_say(tmp_path, document):
    # However full the disk is on which the tests run.
    exports = "export FUEL_MAX_DISK_USAGE=1; "
    for language, name, content in blocks(document):
        if language == "python":
            (tmp_path / name).write_text(content)
            continue
        output = ""
        for line in content.splitlines():
            if line.startswith("$ export "):
                exports += f"{line[2:]}; "
            elif line.startswith("$ "):
                output = run(exports + line[2:], tmp_path)
            else:
                assert line in output


@pytest.mark.parametrize(("page", "least"), [("docs/streams.rst", 40), ("docs/images.rst", 15)])
def test_the_pages_on_streams_show_what_they_give(page, least):
    result = doctest.testfile(str(CHECKOUT / page), module_relative=False)

    assert result.failed == 0
    assert result.attempted > least


def test_the_script_of_the_readme_trains_and_goes_on(tmp_path):
    for _, name, content in blocks("README.rst"):
        (tmp_path / name).write_text(content)
    run("fuel-convert digits", tmp_path)

    first = run("python train.py", tmp_path, FUEL_DATA_PATH=".")
    again = run("python train.py", tmp_path, FUEL_DATA_PATH=".")

    assert "690 batches, 30 epochs" in first
    assert "690 batches, 30 epochs" in again


def test_the_list_of_data_sets_is_whole():
    text = (CHECKOUT / "docs/datasets.rst").read_text()
    bases = {"Dataset", "H5PYDataset", "IndexableDataset", "IterableDataset"}
    own = {"PlainHDF5Dataset", "PytablesDataset"}
    for name in set(fuel_data.datasets.__all__) - bases - own:
        assert f"``{name}``" in text, name
    for name, _ in all_converters:
        assert f"``{name}" in text or f"fuel-convert {name}" in text, name


def test_the_readme_names_only_modules_that_are_there():
    text = (CHECKOUT / "README.rst").read_text()
    named = re.findall(r"``((?:bricks|extensions|fuel_data)(?:\.\w+)*)``$", text, re.MULTILINE)

    assert len(named) > 20
    for module in named:
        importlib.import_module(module)


DOCUMENTS = ["README.rst", "CONTRIBUTING.rst", "CHANGES.rst"]
DOCUMENTS += sorted(str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("docs/*.rst"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_are_right_restructured_text(document):
    settings = {"report_level": 2, "halt_level": 2}

    docutils.core.publish_string(
        (CHECKOUT / document).read_text(), writer="null", settings_overrides=settings
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_lines_of_documents_fit_a_screen(document):
    lines = (CHECKOUT / document).read_text().splitlines()

    assert max(map(len, lines)) <= 120
