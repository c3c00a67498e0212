import re

import numpy
import pytest

from fuel_data.datasets import IndexableDataset, IterableDataset
from fuel_data.exceptions import AxisLabelsMismatchError, KindMismatchError
from fuel_data.schemes import SequentialExampleScheme, SequentialScheme
from fuel_data.streams import DataStream
from fuel_data.transformers import Interleave, LinearWeights, Mix, PiecewiseWeights, Repeat


def letters(text):
    return DataStream(IterableDataset({"x": text}))


def spell(stream, epoch=0):
    return "".join(letter for (letter,) in stream.get_epoch_iterator(epoch=epoch))


def share(text, letter):
    return text.count(letter) / len(text)


def test_streams_are_drawn_in_proportion_to_their_weights():
    text = spell(Mix([Repeat(letters(x)) for x in "abc"], weights=[5, 3, 0], num_items=4000))

    assert len(text) == 4000
    # Three standard deviations of a binomial distribution are 0.023.
    assert abs(share(text, "a") - 5 / 8) < 0.023
    assert share(text, "c") == 0


def test_what_is_drawn_after_a_stream_has_ended_is_in_proportion_too():
    streams = [letters(""), letters("bbbbb"), letters("ccccc"), letters("ddddd")]
    firsts = "".join(spell(Mix(streams, [4, 1, 1, 2], seed=seed))[0] for seed in range(2000))

    # Three standard deviations of a binomial distribution are at most 0.034.
    assert [share(firsts, x) for x in "bcd"] == pytest.approx([0.25, 0.25, 0.5], abs=0.034)


def test_an_iterator_goes_on_wherever_a_stream_has_ended():
    mixed = Mix([letters("ab"), letters("123456"), letters("uvwxyzuvwxyz")], [1, 1, 1], seed=3)
    text = spell(mixed)

    for count in range(len(text)):
        iterator = mixed.get_epoch_iterator(epoch=0)
        begun = [next(iterator) for _ in range(count)]
        restored = mixed.get_epoch_iterator(epoch=0)
        restored.set_state(iterator.get_state())
        assert "".join(letter for (letter,) in [*begun, *restored]) == text


def test_rounding_does_not_draw_a_stream_of_weight_0():
    # The smallest number above 0: half of the draws round up to it.
    streams = [Repeat(letters(x)) for x in "abc"]
    assert set(spell(Mix(streams, weights=[0, 5e-324, 0], num_items=40))) == {"b"}


def test_each_epoch_draws_anew_and_each_run_the_same():
    mixed = Mix([Repeat(letters(x)) for x in "ab"], weights=[1, 1], num_items=40)

    assert spell(mixed) == spell(mixed) != spell(mixed, epoch=1)


def test_all_streams_are_read_to_their_ends_in_their_own_order():
    mixed = Mix([letters("abcde"), letters("12")], weights=[1, 9])
    text = spell(mixed)

    assert sorted(text) == sorted("abcde12")
    assert re.sub("[a-z]", "", text) == "12"
    assert re.sub("[0-9]", "", text) == "abcde"
    assert (len(mixed), mixed.num_examples) == (7, 7)


def test_an_epoch_can_end_with_the_first_stream_that_ends():
    mixed = Mix([letters("abc"), Repeat(letters("."))], weights=[1, 1], until="first")
    iterator = mixed.get_epoch_iterator()
    text = "".join(letter for (letter,) in iterator)

    assert text.replace(".", "") == "abc"
    assert next(iterator, None) is None
    assert iterator.notes() == [("Mix", {"items by stream": [3, len(text) - 3], "ended": [0]})]
    assert mixed.num_batches is None


def test_steps_of_a_schedule_are_counted_over_epochs():
    steps = []

    def weights(step):
        steps.append(step)
        return (1, 0) if step < 6 else (0, 1)

    mixed = Mix([Repeat(letters(x)) for x in "ab"], weights, num_items=4)

    assert [spell(mixed, epoch) for epoch in range(3)] == ["aaaa", "aabb", "bbbb"]
    assert sorted(set(steps)) == list(range(12))


def test_weights_go_linearly_or_by_pieces():
    linear = LinearWeights([1, 0], [0, 2], num_steps=4)
    pieces = PiecewiseWeights({10: [0, 1], 0: [1, 0]})

    assert [linear(step) for step in (0, 1, 4, 9)] == [(1, 0), (0.75, 0.5), (0, 2), (0, 2)]
    assert [pieces(step) for step in (0, 9, 10, 99)] == [(1, 0), (1, 0), (0, 1), (0, 1)]
    assert repr(linear) == "LinearWeights([1.0, 0.0], [0.0, 2.0], num_steps=4)"
    assert repr(pieces) == "PiecewiseWeights({0: (1.0, 0.0), 10: (0.0, 1.0)})"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearWeights([1], [1, 2], 3), "`begin` and `end` must have as many weights"),
        (lambda: LinearWeights([1], [1], 0), "`num_steps` must be at least 1"),
        (lambda: PiecewiseWeights({5: [1]}), "from step 0 on"),
        (lambda: PiecewiseWeights({0: [1], 5: [1, 2]}), "equally many weights"),
    ],
)
def test_schedules_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_schedule_needs_the_length_of_an_epoch():
    weights = PiecewiseWeights({0: [1, 0], 3: [0, 1]})
    with pytest.raises(ValueError, match="Mix: weights that change .* Give `num_items`"):
        Mix([Repeat(letters("a")), letters("b")], weights)
    # Of streams whose lengths are known it is known.
    assert spell(Mix([letters("abc"), letters("xy")], weights)) == "abcxy"


@pytest.mark.parametrize("weights", [[1], [1, -1], [0, 0], [1, float("nan")], [1, float("inf")]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="Mix: `weights` must be 2 numbers from 0, one for each"):
        Mix([letters("a"), letters("b")], weights)
    with pytest.raises(ValueError, match="Mix: `weights` must be 2 numbers from 0, one for each"):
        Mix([letters("a"), letters("b")], lambda step: weights)


def test_a_stream_of_weight_0_is_not_left_out_in_silence():
    mixed = Mix([letters("ab"), letters("cd")], weights=[1, 0])
    with pytest.raises(
        ValueError,
        match="Mix: after 2 items all streams of a weight above 0 .* number 1, of weight 0",
    ):
        spell(mixed)


def test_streams_that_end_before_the_epoch_are_an_error():
    with pytest.raises(
        ValueError, match="Mix: the streams ended after 4 of `num_items`=9 items. Put"
    ):
        spell(Mix([letters("ab"), letters("cd")], weights=[1, 1], num_items=9))
    with pytest.raises(ValueError, match="Mix: `num_items` must be at least 0; got -1"):
        Mix([letters("ab")], [1], num_items=-1)


def test_interleaved_streams_take_turns():
    streams = [letters("abcdef"), letters("12"), letters("XYZ")]

    assert spell(Interleave(streams)) == "a1Xb2YcZdef"
    assert spell(Interleave(streams, block_length=2)) == "ab12XYcdZef"
    assert spell(Interleave(streams, until="first")) == "a1Xb2Yc"
    assert len(Interleave(streams)) == 11
    assert Interleave(streams, until="first").num_batches is None


def test_a_stream_that_ends_within_its_block_does_not_shorten_the_next_one():
    assert spell(Interleave([letters("a"), letters("1234")], block_length=3)) == "a1234"
    assert spell(Interleave([letters("abc"), letters("1")], block_length=2)) == "ab1c"


def labelled(labels, source="x", examples=True):
    dataset = IndexableDataset({source: numpy.zeros((4, 2, 3))}, axis_labels=labels)
    scheme = SequentialExampleScheme(4) if examples else SequentialScheme(4, 2)
    return DataStream(dataset, scheme)


@pytest.mark.parametrize("make", [lambda s: Mix(s, [1] * len(s)), Interleave])
def test_streams_that_do_not_fit_together_are_refused_when_they_are_put_together(make):
    wide, high = {"x": ("batch", "height", "width")}, {"x": ("batch", "width", "height")}
    with pytest.raises(ValueError, match="`data_streams` must have at least one stream"):
        make([])
    with pytest.raises(
        KindMismatchError, match="number 0 gives examples, number 1 batches. Put Batch or Unpack"
    ):
        make([labelled(None), labelled(None, examples=False)])
    with pytest.raises(
        ValueError, match=r"number 0 has \['x'\], number 1 \['y'\]. Put FilterSources or Rename"
    ):
        make([labelled(None), labelled(None, source="y")])
    with pytest.raises(
        AxisLabelsMismatchError,
        match=r"axes of the source 'x' .* \('height', 'width'\) in number 0 and "
        r"\('width', 'height'\) in number 2",
    ):
        make([labelled(wide), labelled(None), labelled(high)])
    assert make([labelled(None), labelled(wide)]).axis_labels == {"x": ("height", "width")}
    assert make([labelled(None), labelled(None)]).axis_labels is None


def test_arguments_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="Interleave: `block_length` must be at least 1; got 0"):
        Interleave([letters("a")], block_length=0)
    with pytest.raises(ValueError, match="Mix: `until` must be 'all' or 'first'; got 'last'"):
        Mix([letters("a")], [1], until="last")


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearWeights([1, 1], [-1, 2], 5),
        lambda: LinearWeights([1, 0], [0, 0], 5),
        lambda: LinearWeights([1, float("nan")], [1, 0], 5),
        lambda: PiecewiseWeights({0: [1, 1], 9: [-1, 2]}),
        lambda: PiecewiseWeights({0: [1, 1], 9: [0, 0]}),
        lambda: Mix([letters("a"), letters("b")], [1e308, 1e308]),
    ],
)
def test_weights_of_a_later_step_that_make_no_sense_are_refused_at_once(make):
    with pytest.raises(ValueError, match="not all 0; got"):
        make()


@pytest.mark.parametrize("over", [lambda s, **k: Mix(s, [1], **k), Interleave])
def test_labels_of_unknown_sources_and_what_are_no_streams_are_refused(over):
    with pytest.raises(ValueError, match="`axis_labels` names 'y', which is not among the sources"):
        over([letters("a")], axis_labels={"y": ()})
    with pytest.raises(TypeError, match="`data_streams` must be a sequence of streams; got DataSt"):
        over(letters("a"))
    with pytest.raises(
        TypeError, match=r"`data_streams\[0\]` must be a stream; got Iterab.* Put a"
    ):
        over([letters("a").dataset])
