import argparse

import pytest

from fuel_data.utils.parsers import Parser, positive


@pytest.fixture
def parser():
    parser = Parser(prog="cut")
    subparsers = parser.add_subparsers(metavar="NAME", required=True)
    subparsers.add_parser("join").add_argument("--secret", help=argparse.SUPPRESS)
    convert = subparsers.add_parser("arrays")
    convert.add_argument("name", nargs="?")
    convert.add_argument_group("splits").add_argument("--train", nargs="+")
    convert.add_argument("-s", "--seed", type=int, default=1)
    convert.add_argument("--split", action="append")
    convert.add_argument("--encoded", action="store_true")
    convert.add_argument("--size", type=int, choices=(16, 28))
    return parser


def test_what_is_given_once_is_stored(parser):
    for _ in range(2):
        options = parser.parse_args(["arrays", "x", "--train", "a", "b", "-s", "7"])
        assert (options.name, options.train, options.seed) == ("x", ["a", "b"], 7)
    assert parser.parse_args(["arrays"]).seed == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--train", "a", "--train", "a"],
            "argument --train: it is given twice; give all its values at once.\n",
        ),
        (["--train", "a", "--tra", "b"], "argument --train: it is given twice"),
        (["-s", "1", "--seed=1"], "argument -s/--seed: it is given twice; give it once.\n"),
    ],
)
def test_an_option_that_is_given_twice_is_refused(parser, capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["arrays", *arguments])
    assert message in capsys.readouterr().err


def test_what_may_be_repeated_is_kept(parser):
    options = parser.parse_args(["arrays", *2 * ["--split", "a", "--encoded"]])

    assert options.split == ["a", "a"] and options.encoded


@pytest.mark.parametrize(
    ("arguments", "program", "message"),
    [
        ([], "cut", "NAME is missing. Known: arrays, join."),
        (["arays"], "cut", "argument NAME: 'arays' is not known. Did you mean 'arrays'?"),
        (["--seed=1", "arrays"], "cut", "--seed stands behind NAME, as in `cut NAME --seed`."),
        (
            ["arrays", "--sed", "1"],
            "cut arrays",
            "unrecognized arguments: --sed. Did you mean '--seed'?",
        ),
        (["join", "--split=1"], "cut join", "unrecognized arguments: --split=1. Known: --help."),
        (["join", "x", "y"], "cut join", "unrecognized arguments: x y. It takes options only."),
        (["arrays", "x", "y"], "cut arrays", "arguments: y. Besides options it takes name only."),
        (
            ["arrays", "--size", "3"],
            "cut arrays",
            "argument --size: 3 is not known. Known: 16, 28.",
        ),
    ],
)
def test_what_is_not_known_is_refused_with_the_way_out(parser, capsys, arguments, program, message):
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(arguments)
    error = capsys.readouterr().err
    assert error.startswith(f"usage: {program} [-h]")
    assert f"\n{program}: error: " in error and error.endswith(f"{message}\n")


def test_help_stands_before_the_name_too(parser, capsys):
    with pytest.raises(SystemExit, match="0"):
        parser.parse_args(["--he"])
    assert "usage: cut [-h] NAME ..." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "right", "wrong", "words"),
    [
        (int, "3", ["0", "-1", "2.5", "many"], "a whole number of at least 1"),
        (float, "0.5", ["0", "-1", "inf", "nan", "many"], "a finite number of more than 0"),
    ],
)
def test_a_positive_number_is_one(number, right, wrong, words):
    assert positive(number)(right) == number(right)
    for text in wrong:
        with pytest.raises(argparse.ArgumentTypeError, match=f"^must be {words}; got '{text}'.$"):
            positive(number)(text)
