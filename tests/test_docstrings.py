"""Everything public has a docstring after numpydoc: what goes in, what comes out."""

import importlib
import inspect
import pkgutil

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

# A summary; each parameter with its type, in order; the result; no unknown section.
CHECKS = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "PR04", "RT01", "YD01"}


def modules(package):
    yield package
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def public_objects(module_name):
    """The public functions and classes that a module defines, and their methods, by name."""
    module = importlib.import_module(module_name)
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module_name or not is_listed(module, name):
            continue
        if inspect.isfunction(value):
            yield f"{module_name}.{name}", value
        elif inspect.isclass(value):
            yield f"{module_name}.{name}", value
            for method_name, method in own_methods(value):
                yield f"{module_name}.{name}.{method_name}", method


def is_listed(module, name):
    """Whether a module offers a name: by its list, or for want of one by the name itself.

    What lowers an operation is registered, not called; `bricks.xla.lowering` documents them all.
    """
    listed = name in getattr(module, "__all__", [name])
    return listed and not name.startswith(("_", "lower_"))


def own_methods(class_):
    """Public methods that do not take the place of one that a base documents."""
    for name, value in vars(class_).items():
        value = getattr(value, "__func__", value)
        documented = any(
            getattr(getattr(base, name, None), "__doc__", None) for base in class_.__mro__[1:]
        )
        if inspect.isfunction(value) and not name.startswith("_") and not documented:
            yield name, value


def faults(name, value):
    inherited = inspect.isclass(value) and "__init__" not in vars(value)
    for code, text in validate(get_doc_object(value))["errors"]:
        if code == "PR01" and (inherited or "{'*" in text.replace("', '*", "")):
            continue  # the base, or what the arguments are handed on to, says what they are
        if code == "PR02" and takes_any_keyword(value):
            continue  # the docstring lists the keywords
        if code in CHECKS:
            yield f"{name}: {code} {text}"


def takes_any_keyword(value):
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


@pytest.mark.parametrize("package", ["bricks", "extensions", "fuel_data"])
def test_public_docstrings_say_what_goes_in_and_what_comes_out(package):
    wrong = [
        fault
        for module in modules(package)
        for name, value in public_objects(module)
        for fault in faults(name, value)
    ]

    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong)
