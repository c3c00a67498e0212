"""Small helpers that do not depend on the rest of the package.

The plain ones are in :mod:`bricks.utils.plain`, those that deal with symbolic variables in
:mod:`bricks.utils.variables`, the list that notices changes in :mod:`bricks.utils.containers`.
"""

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
from bricks.utils.variables import (
    check_aesara_variable,
    check_theano_variable,
    ipdb_breakpoint,
    is_graph_input,
    is_shared_variable,
    print_shape,
    print_sum,
    put_hook,
    shared_floatx,
    shared_floatx_nans,
    shared_floatx_zeros,
    shared_floatx_zeros_matching,
    shared_like,
)

__all__ = [
    "change_recursion_limit",
    "check_aesara_variable",
    "check_theano_variable",
    "dict_subset",
    "dict_union",
    "extract_args",
    "find_bricks",
    "ipdb_breakpoint",
    "is_graph_input",
    "is_shared_variable",
    "pack",
    "print_shape",
    "print_sum",
    "put_hook",
    "repr_attrs",
    "reraise_as",
    "shared_floatx",
    "shared_floatx_nans",
    "shared_floatx_zeros",
    "shared_floatx_zeros_matching",
    "shared_like",
    "unpack",
]
