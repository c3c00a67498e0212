import io
import sys

from fuel_data.utils.progress import progress_bar


def test_on_a_terminal_a_bar_goes_to_a_hundred_percent(make_terminal):
    terminal = make_terminal()
    with progress_bar("x.hdf5", 200) as progress:
        progress(150)
        progress(70)

    assert "Converting x.hdf5   0%" in terminal.shown()
    assert "Converting x.hdf5 100%" in terminal.shown()


def test_a_bar_is_told_how_many_steps_were_made_in_all_as_in_fuel(make_terminal):
    terminal = make_terminal()
    with progress_bar("x.hdf5", 200) as bar:
        bar.update(100)
        bar.update(200)

    assert "Converting x.hdf5 100%" in terminal.shown()
    assert bar.value == 200


def test_elsewhere_nothing_is_printed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    with progress_bar("x.hdf5", 200) as progress:
        progress(150)
        progress.update(200)

    assert sys.stderr.getvalue() == ""
