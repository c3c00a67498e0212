"""Sets Aesara up before a test imports it."""

import bricks  # noqa: F401
