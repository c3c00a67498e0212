import pytest

from fuel_data.utils.parsers import Parser


@pytest.fixture
def parser():
    parser = Parser(prog="cut")
    convert = parser.add_subparsers().add_parser("arrays")
    convert.add_argument("name", nargs="?")
    convert.add_argument_group("splits").add_argument("--train", nargs="+")
    convert.add_argument("-s", "--seed", type=int, default=1)
    convert.add_argument("--split", action="append")
    convert.add_argument("--encoded", action="store_true")
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
