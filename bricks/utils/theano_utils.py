"""The name that Blocks had for `bricks.utils.variables`."""

from bricks.utils.variables import (
    check_theano_variable,
    is_graph_input,
    is_shared_variable,
    put_hook,
    shared_floatx,
    shared_floatx_nans,
    shared_floatx_zeros,
    shared_floatx_zeros_matching,
    shared_like,
)

__all__ = [
    "check_theano_variable",
    "is_graph_input",
    "is_shared_variable",
    "put_hook",
    "shared_floatx",
    "shared_floatx_nans",
    "shared_floatx_zeros",
    "shared_floatx_zeros_matching",
    "shared_like",
]
