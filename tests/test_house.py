"""The house keeps its shape: what is packaged, what is annotated, what the scripts say."""

import ast
import configparser
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("bricks", "extensions", "fuel_data")


def package_folders() -> set[str]:
    """Names of all packages in the checkout, dotted."""
    return {
        ".".join(path.parent.relative_to(CHECKOUT).parts)
        for package in PACKAGES
        for path in (CHECKOUT / package).rglob("__init__.py")
    }


def configuration() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(CHECKOUT / "setup.cfg")
    return parser


def test_setup_names_every_package():
    named = configuration()["options"]["packages"].split()

    assert sorted(package_folders()) == sorted(named)


def test_wheel_holds_the_packages_their_data_and_the_licence_and_nothing_else(tmp_path):
    # A copy, since setuptools builds into the folder and would pack what it finds there again.
    source = tmp_path / "source"
    for package in PACKAGES:
        shutil.copytree(
            CHECKOUT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("setup.cfg", "pyproject.toml", "README.rst", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
        + [str(source)],
        check=True,
        capture_output=True,
    )

    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {
        path.relative_to(CHECKOUT).as_posix()
        for package in PACKAGES
        for path in (CHECKOUT / package).rglob("*.py")
    }
    data = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / "fuel_data/datasets/data").iterdir()
    }
    information = {name for name in names if ".dist-info/" in name}
    assert names - information == modules | data
    assert any(name.endswith("LICENSE") for name in information)


def test_no_package_stands_below_tests():
    assert not list((CHECKOUT / "tests").rglob("__init__.py"))


def public_functions(tree: ast.Module):
    """Functions of a module, and methods of its public classes, that users call by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node, False
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                    yield inner, True


def unannotated(function: ast.FunctionDef, method: bool) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if method and named and named[0].arg in ("self", "cls"):
        named = named[1:]
    return [argument.arg for argument in named if argument.annotation is None]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_function_annotates_its_arguments(package):
    missing = [
        f"{path.relative_to(CHECKOUT)}:{function.lineno} {function.name}: {', '.join(arguments)}"
        for path in sorted((CHECKOUT / package).rglob("*.py"))
        for function, method in public_functions(ast.parse(path.read_text()))
        if (arguments := unannotated(function, method))
    ]

    assert not missing, "\n".join(missing)


def test_files_stay_short_enough_to_read():
    long = {
        str(path.relative_to(CHECKOUT)): lines
        for package in (*PACKAGES, "scripts", "tests")
        for path in sorted((CHECKOUT / package).rglob("*.py"))
        if (lines := path.read_text().count("\n")) > 650
    }

    assert not long
