"""The name that Blocks had for `bricks.aesara_expressions`."""

from bricks.aesara_expressions import hessian_times_vector, l2_norm

__all__ = ["hessian_times_vector", "l2_norm"]
