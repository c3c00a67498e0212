import io
import re

import pytest

from bricks.utils.profile import Profile, Timer


def make_profile():
    """An epoch of 8 seconds, with two batches of 1.5 seconds and reading, and an end."""
    profile = Profile()
    profile.enter("epoch")
    for _ in range(2):
        profile.enter("batch")
        profile.exit(1.5)
    profile.enter("read")
    profile.exit(1)
    profile.exit(8)
    profile.enter("end")
    profile.exit(2)
    return profile


def test_seconds_are_added_up_by_the_parts_that_a_part_stands_within():
    profile = make_profile()

    assert profile.total == {
        ("epoch",): 8,
        ("epoch", "batch"): 3,
        ("epoch", "read"): 1,
        ("end",): 2,
    }
    assert profile.current == []


def test_the_report_shows_parts_within_parts_and_their_share():
    file = io.StringIO()

    make_profile().report(file)

    assert file.getvalue().splitlines() == [
        "epoch         8.000 s   80.0%",
        "  batch       3.000 s   37.5%",
        "  read        1.000 s   12.5%",
        "end           2.000 s   20.0%",
    ]


def test_a_timer_leaves_its_part_whatever_happens(capsys):
    profile = Profile()
    with pytest.raises(KeyError), Timer("outer", profile), Timer("inner", profile):
        raise KeyError

    assert profile.current == []
    assert profile.total[("outer",)] >= profile.total[("outer", "inner")] >= 0
    profile.report()
    assert re.match(r"outer +0\.000 s +100\.0%\n  inner ", capsys.readouterr().err)


def test_leaving_a_part_that_was_not_entered_is_refused():
    with pytest.raises(RuntimeError, match="no part has been entered"):
        Profile().exit(1)
