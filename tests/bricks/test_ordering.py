"""The order of extensions by what they read, write and save."""

from types import SimpleNamespace

import pytest

from bricks.ordering import check_records, flat, in_order


def extension(name, reads=(), writes=(), **flags):
    return SimpleNamespace(name=name, records_read=reads, records_written=writes, **flags)


def names(extensions):
    return "".join(extension.name for extension in extensions)


def test_the_order_is_that_of_the_list_if_nothing_speaks_against_it():
    extensions = [extension("a"), extension("b", reads=["x"]), SimpleNamespace(name="c")]

    assert names(in_order(extensions)) == "abc"


def test_who_reads_comes_right_after_the_last_one_that_writes_it():
    reader = extension("r", reads=["x", "y"])
    writers = [extension("a", writes=["x"]), extension("b", writes=["y", "z"])]

    assert names(in_order([reader, extension("c"), *writers, extension("d")])) == "cabrd"


def test_who_reads_what_a_reader_writes_comes_after_it():
    second = extension("2", reads=["best"])
    first = extension("1", reads=["x"], writes=["best"])

    assert names(in_order([second, first, extension("w", writes=["x"])])) == "w12"


def test_two_that_read_from_each_other_stay_as_they_are():
    extensions = [extension("a", ["x"], ["y"]), extension("b", ["y"], ["x"]), extension("c", "x")]

    assert names(in_order(extensions)) == "abc"


def test_who_saves_comes_after_a_reader_that_was_moved():
    saver = extension("s", reads=["best"], runs_last=True)
    reader = extension("r", reads=["x"], writes=["best"])
    reporter = extension("p", only_reports=True)

    assert names(in_order([saver, reader, extension("w", writes=["x"]), reporter])) == "wrsp"


def test_a_composite_extension_is_followed_by_what_it_consists_of():
    inner = extension("b", sub_extensions=[extension("c")])

    assert names(flat([extension("a", sub_extensions=[inner, extension("d")])])) == "abcd"


def test_what_a_part_of_a_composite_extension_writes_counts():
    writer = extension("w", writes=["x"], writes_what_it_says=True)
    composite = extension("c", sub_extensions=[writer], writes_what_it_says=True)
    check_records([composite, extension("r", reads=["x"], writes_what_it_says=True)])

    with pytest.raises(ValueError, match="z: it looks for a record 'xs', .* mean 'x'"):
        check_records([composite, extension("z", reads=["xs"], writes_what_it_says=True)])


def test_who_does_not_say_what_it_writes_may_write_it():
    check_records([extension("r", reads=["x"], writes_what_it_says=True), extension("a")])


@pytest.mark.parametrize("name", ["training_finished", "got_exception"])
def test_what_the_loop_writes_is_not_missing(name):
    check_records([extension("r", reads=[name], writes_what_it_says=True)])
