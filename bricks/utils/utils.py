"""The name that Blocks had for `bricks.utils.plain`."""

from bricks.utils.plain import (
    change_recursion_limit,
    dict_subset,
    dict_union,
    extract_args,
    find_bricks,
    pack,
    repr_attrs,
    reraise_as,
    unpack,
)
from bricks.utils.variables import ipdb_breakpoint, print_shape, print_sum

__all__ = [
    "change_recursion_limit",
    "dict_subset",
    "dict_union",
    "extract_args",
    "find_bricks",
    "ipdb_breakpoint",
    "pack",
    "print_shape",
    "print_sum",
    "repr_attrs",
    "reraise_as",
    "unpack",
]
