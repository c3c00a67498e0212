import io
import re
import sys
from pathlib import Path

import progressbar
import pytest

# Small files in the formats of the published ones.
sys.path.append(str(Path(__file__).parent / "converters" / "support"))


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def shown(self):
        """What was written, without the codes of colours."""
        return re.sub("\x1b[^m]*m", "", self.getvalue())


@pytest.fixture
def make_terminal(monkeypatch):
    """Put a terminal in the place of standard error. (pytest would undo it before the test.)"""

    def make():
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        # progressbar remembers the stream that was there when it was first imported.
        monkeypatch.setattr(progressbar.streams, "original_stderr", terminal)
        return terminal

    return make
