import io
import re
import sys

import progressbar

from fuel_data.utils.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_a_bar_goes_to_a_hundred_percent(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    # It remembers the stream that was there when it was first imported.
    monkeypatch.setattr(progressbar.streams, "original_stderr", sys.stderr)

    with progress_bar("x.hdf5", 200) as progress:
        progress(150)
        progress(70)

    shown = re.sub("\x1b[^m]*m", "", sys.stderr.getvalue())
    assert "Converting x.hdf5   0%" in shown
    assert "Converting x.hdf5 100%" in shown


def test_elsewhere_nothing_is_printed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with progress_bar("x.hdf5", 200) as progress:
        progress(150)

    assert sys.stderr.getvalue() == ""
