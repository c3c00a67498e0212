import json
import os
import subprocess
import sys

import h5py
import numpy
import pytest

from fuel_data.commands.convert import main


def test_the_digits_are_converted(tmp_path, capsys):
    assert main(["digits", "-o", str(tmp_path / "new" / "folder")]) == 0

    path = tmp_path / "new" / "folder" / "digits.hdf5"
    assert capsys.readouterr().out == f"{path}: {path.stat().st_size:,} bytes\n"
    assert os.listdir(path.parent) == ["digits.hdf5"]


def test_the_file_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    monkeypatch.setattr(sys, "argv", ["something", "else"])

    main(["digits", "-o", str(tmp_path), "-r", "a b"])

    with h5py.File(tmp_path / "a b.hdf5") as h5file:
        texts = {name: value.decode() for name, value in h5file.attrs.items() if name != "split"}
    libraries = json.loads(texts.pop("fuel_convert_libraries"))
    inputs = json.loads(texts.pop("fuel_convert_inputs"))
    assert set(json.loads(texts.pop("digests"))) == {"", "features", "targets"}
    assert texts == {
        "h5py_interface_version": "0.3",
        "fuel_convert_version": "0.2",
        "fuel_convert_command": f"fuel-convert digits -o {tmp_path} -r 'a b'",
        "fuel_convert_date": "1970-01-02T00:00:00+00:00",
    }
    assert libraries["h5py"] == h5py.__version__
    assert libraries["numpy"] == numpy.__version__
    assert set(libraries) == {"h5py", "hdf5", "numpy", "python", "firebrick"}
    assert list(inputs) == ["digits.csv.gz"] and len(inputs["digits.csv.gz"]) == 64


@pytest.mark.parametrize(
    ("name", "written"),
    [("x", "x.hdf5"), ("x.h5", "x.h5"), ("x.hdf", "x.hdf"), ("x.hdf5", "x.hdf5")],
)
def test_the_name_gets_a_suffix_if_it_has_none(tmp_path, name, written):
    main(["digits", "-o", str(tmp_path), "-r", name])

    assert os.listdir(tmp_path) == [written]


def test_the_same_conversion_writes_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.chdir(tmp_path)
    main(["digits"])
    first = (tmp_path / "digits.hdf5").read_bytes()
    main(["digits"])

    assert (tmp_path / "digits.hdf5").read_bytes() == first


def test_a_date_that_is_none_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")

    assert main(["digits", "-o", str(tmp_path)]) == 1
    words = "SOURCE_DATE_EPOCH must be a number of seconds since 1970; got 'yesterday'. Unset it."
    assert words in capsys.readouterr().err


CONVERTERS = """
import os

import h5py


def fill_toy(subparser):
    subparser.add_argument("--number", type=int, default=3)
    return convert_toy


def convert_toy(directory, output_directory, output_filename="toy.hdf5", number=3):
    path = os.path.join(output_directory, output_filename)
    with h5py.File(path, "w") as h5file:
        h5file["x"] = range(number)
        if number < 0:
            raise ValueError("toy: the number must not be negative")
    return (path,)


all_converters = (("toy", fill_toy),)
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "toy_converters.py").write_text(CONVERTERS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", "toy_converters")
    (tmp_path / "out").mkdir()
    yield tmp_path / "out"
    sys.modules.pop("toy_converters", None)


def test_converters_of_the_user_are_found_by_the_setting(toy):
    assert main(["toy", "-o", str(toy), "--number", "4"]) == 0

    with h5py.File(toy / "toy.hdf5") as h5file:
        assert h5file["x"][()].tolist() == [0, 1, 2, 3]
        assert h5file.attrs["fuel_convert_command"].endswith(b"--number 4")


def test_a_conversion_that_fails_leaves_the_old_file_and_nothing_else(toy, capsys):
    (toy / "toy.hdf5").write_text("old")

    assert main(["toy", "-o", str(toy), "--number", "-1"]) == 1

    assert capsys.readouterr().err == "fuel-convert toy: toy: the number must not be negative\n"
    assert (toy / "toy.hdf5").read_text() == "old"
    assert os.listdir(toy) == ["toy.hdf5"]


def test_a_name_that_is_taken_is_refused(toy, capsys):
    toy.with_name("toy_converters.py").write_text(CONVERTERS.replace('"toy",', '"digits",'))

    assert main(["digits"]) == 1
    assert "'toy_converters' names 'digits' in `all_converters`, which is taken" in (
        capsys.readouterr().err
    )


def test_a_module_that_cannot_be_imported_is_an_error(monkeypatch, capsys):
    monkeypatch.setenv("FUEL_EXTRA_CONVERTERS", "not_there")

    assert main(["digits"]) == 1
    assert "'not_there' in the setting extra_converters must be importable" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("args", [[], ["digit"], ["digits", "--unknown"]])
def test_a_wrong_call_ends_with_status_two(args, capsys):
    with pytest.raises(SystemExit) as ended:
        main(args)

    assert ended.value.code == 2
    assert "usage: fuel-convert" in capsys.readouterr().err


def test_a_full_disk_is_a_readable_error_and_the_old_file_stays(tmp_path):
    (tmp_path / "digits.hdf5").write_text("old")
    program = (
        "import resource, sys\n"
        "from fuel_data.commands.convert import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "sys.exit(main(['digits', '-o', sys.argv[1]]))\n"
    )

    done = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr == (
        f"fuel-convert digits: '{tmp_path}' could not be written: File too large. Nothing was "
        "written, and an old file is as it was. Make room there, or choose another folder by -o.\n"
    )
    assert (tmp_path / "digits.hdf5").read_text() == "old"
    assert os.listdir(tmp_path) == ["digits.hdf5"]


def test_what_a_killed_conversion_left_is_removed_by_the_next_one(toy):
    left = toy / ".fuel-convert-killed"
    left.mkdir()
    (left / "toy.hdf5").write_text("half")
    os.utime(left, (0, 0))

    main(["toy", "-o", str(toy)])

    assert os.listdir(toy) == ["toy.hdf5"]


@pytest.mark.parametrize(
    "args",
    [
        "arrays --train a.npz --train b.npz",
        "arrays --all a.npz --fractions a=0.5 --fractions b=0.5",
        "arrays --train a.csv --columns x=a --columns y=b",
        "arrays --train a.npz --dtype x=f4 --dtype y=f4",
        "stream --train a.py:f --train b.py:f",
        "image_folder --fractions train=.5 --fractions all=1",
        "image_folder --splits a --splits b",
        "mnist -o a -o b",
        "mnist --compression gzip --compression lzf",
    ],
)
def test_an_option_that_would_drop_the_one_before_is_refused(args, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(args.split())
    assert "it is given twice; give " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("", "fuel-convert: error: NAME is missing. Known: adult, arrays"),
        ("minst", "'minst' is not known. Did you mean 'mnist'?"),
        ("--compression gzip digits", "as in `fuel-convert NAME --compression`."),
        ("digits --compresion gzip", "fuel-convert digits: error: unrecognized arguments: --comp"),
        ("arrays table.csv", "unrecognized arguments: table.csv. It takes options only."),
        ("digits --chunk-examples 0", "--chunk-examples: must be a whole number of at least 1"),
        ("stream --train a:b --epochs 0", "--epochs: must be a whole number of at least 1; got"),
        ("stream --train a:b --num-examples x", "--num-examples: must be a whole number of at l"),
        ("svhn 3", "argument FORMAT: 3 is not known. Known: 1, 2."),
        ("svhn", "the following arguments are required: FORMAT"),
    ],
)
def test_a_wrong_call_is_refused_with_the_way_out(args, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(args.split())
    assert words in capsys.readouterr().err


def test_help_says_which_names_are_for_data_of_ones_own(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert "For data of your own there are arrays, image_folder and stream" in words
    assert "`fuel-convert NAME --help` says what each takes." in words
