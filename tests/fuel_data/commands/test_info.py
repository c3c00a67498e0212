import h5py
import numpy
import pytest

from fuel_data.commands.convert import main as convert
from fuel_data.commands.info import main
from fuel_data.datasets.hdf5 import H5PYDataset


def test_provenance_sources_and_splits_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.chdir(tmp_path)
    convert(["digits"])
    capsys.readouterr()

    assert main(["digits.hdf5"]) == 0

    lines = capsys.readouterr().out.splitlines()
    for line in (
        "  command    fuel-convert digits",
        "  date       1970-01-01T00:00:00+00:00",
        "  format     0.3",
        f"    numpy     {numpy.__version__}",
        "  features uint8 (1797, 1, 8, 8), axes: batch, channel, height, width",
        "  targets  uint8 (1797, 1), axes: batch, index",
        "  train features: 1437 examples, 0 to 1437",
        "  test  targets: 360 examples, 1437 to 1797",
    ):
        assert line in lines
    assert any(line.startswith("    digits.csv.gz ") for line in lines)


def test_a_file_without_provenance_with_indices_and_lengths_is_described(tmp_path, capsys):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as h5file:
        h5file.create_dataset("sounds", (4,), dtype=h5py.vlen_dtype("float32"))
        h5file["indices"] = [0, 2, 3]
        h5file["twice"] = [3, 0, 3]
        splits = {
            "odd": {"sounds": (-1, -1, h5file["indices"].ref, "a remark")},
            "twice": {"sounds": (-1, -1, h5file["twice"].ref)},
        }
        h5file.attrs["split"] = H5PYDataset.create_split_array(splits)

    assert main([str(path)]) == 0

    out = capsys.readouterr().out
    assert "  command    not recorded\n" in out
    assert "  inputs     not recorded\n" in out
    assert "  sounds float32 (4,), variable length, axes: no labels\n" in out
    assert "  odd   sounds: 3 examples by indices (a remark)\n" in out
    assert "  twice sounds: 2 examples by 3 indices\n" in out
    assert H5PYDataset(path, ("twice",)).num_examples == 2


def test_the_file_is_looked_for_in_the_data_path(tmp_path, capsys, monkeypatch):
    convert(["digits", "-o", str(tmp_path)])
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))

    assert main(["digits.hdf5"]) == 0
    assert str(tmp_path / "digits.hdf5") in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_an_error_with_its_name(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FUEL_DATA_PATH", str(tmp_path))
    (tmp_path / "text").write_text("text")
    with h5py.File(tmp_path / "other.h5", "w"):
        pass
    (tmp_path / "short").write_bytes((tmp_path / "other.h5").read_bytes()[:-8])

    for name, message in (
        ("missing", "is in no folder of the data path"),
        ("text", "it is a file of another kind, or its beginning is damaged"),
        ("short", "It has been cut short: fetch or convert it again."),
        ("other.h5", "no root attribute 'split'"),
    ):
        assert main([name]) == 1
        error = capsys.readouterr().err
        assert error.startswith("fuel-info: ") and message in error
        assert name in error and error.count(str(tmp_path / name)) <= 1


def test_a_folder_is_no_file(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"fuel-info: {tmp_path} is a folder; name a file in it.\n"


@pytest.mark.parametrize(
    "option", [["--split", "train"], ["--sources", "x"], ["--num-examples", "3"]]
)
def test_an_option_that_is_given_twice_is_refused(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["x.hdf5", "--preview", "x.png", *option, *option])
    assert f"argument {option[0]}: it is given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--previw", "x.png"], "--previw x.png. Did you mean '--preview'?"),
        (["y.hdf5"], "unrecognized arguments: y.hdf5. Besides options it takes filename only."),
        (["--num-examples", "0"], "--num-examples: must be a whole number of at least 1; got '0'"),
    ],
)
def test_a_wrong_call_is_refused_with_the_way_out(arguments, words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["x.hdf5", *arguments])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sheet.jpg", "old.hdf5"])
def test_a_preview_in_another_format_is_refused(name, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["x.hdf5", "--preview", name])
    words = f"--preview writes a PNG file; name it FILE.png instead of {name!r}.\n"
    assert capsys.readouterr().err.endswith(words)


@pytest.mark.parametrize(
    "option", [["--split", "train"], ["--sources", "x"], ["--num-examples", "3"]]
)
def test_what_is_for_a_preview_is_refused_without_one(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["x.hdf5", *option])
    assert "--split, --sources and --num-examples go with --preview." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("fuel_convert_inputs", b"no JSON", "'fuel_convert_inputs' must be JSON, names and tex"),
        ("fuel_convert_libraries", b"[1]", "'fuel_convert_libraries' must be JSON, names and tex"),
        ("fuel_convert_command", [1, 2], "the attribute 'fuel_convert_command' must be a text."),
    ],
)
def test_provenance_of_another_form_is_an_error_in_words(tmp_path, capsys, name, value, words):
    convert(["digits", "-o", str(tmp_path)])
    with h5py.File(tmp_path / "digits.hdf5", "r+") as h5file:
        h5file.attrs[name] = numpy.bytes_(value) if isinstance(value, bytes) else value

    assert main([str(tmp_path / "digits.hdf5")]) == 1
    assert words in capsys.readouterr().err


def test_what_is_called_class_names_and_has_none_is_passed_over(tmp_path, capsys):
    convert(["digits", "-o", str(tmp_path)])
    path = tmp_path / "digits.hdf5"
    for value in ([1, 2], None):
        with h5py.File(path, "r+") as h5file:
            if value is None:
                del h5file["class_names"]
                h5file.create_group("class_names")
            else:
                h5file["class_names"] = value
        assert main([str(path)]) == 0
        assert "classes:" not in capsys.readouterr().out


def test_a_joined_file_of_which_a_part_is_missing_has_no_range(tmp_path, capsys):
    convert(["digits", "-o", str(tmp_path)])
    convert(["join", str(tmp_path / "digits.hdf5"), "-o", str(tmp_path), "-r", "all"])
    (tmp_path / "digits.hdf5").unlink()
    capsys.readouterr()

    assert main([str(tmp_path / "all.hdf5")]) == 1
    found = capsys.readouterr()
    assert "has examples in the file 'digits.hdf5', which is not there" in found.err
    assert not found.out


def test_a_joined_file_is_said_to_be_virtual_with_its_parts(tmp_path, capsys):
    for name in ("one", "two"):
        convert(["digits", "-o", str(tmp_path / "parts"), "-r", name])
    files = [str(tmp_path / "parts" / f"{name}.hdf5") for name in ("one", "two")]
    convert(["join", *files, "-o", str(tmp_path), "-r", "all"])
    size = (tmp_path / "parts" / "one.hdf5").stat().st_size
    capsys.readouterr()

    assert main([str(tmp_path / "all.hdf5")]) == 0
    out = capsys.readouterr().out
    assert f"virtual: values are in other files\n  parts/one.hdf5 {size:,} bytes\n" in out
    assert f"  parts/two.hdf5 {size:,} bytes\nsources\n" in out
    assert main([files[0]]) == 0
    assert "virtual" not in capsys.readouterr().out

    with h5py.File(files[1], "r+") as h5file:
        h5file["targets"][3] = 1
    assert main([str(tmp_path / "all.hdf5")]) == 1
    assert f"{files[1]} is not the file that was joined" in capsys.readouterr().err


@pytest.mark.parametrize("is_joined", [True, False])
def test_damage_is_said_with_the_part_where_it_is(tmp_path, capsys, is_joined):
    part, path = tmp_path / "part.hdf5", tmp_path / "part.hdf5"
    with h5py.File(part, "w") as h5file:
        x = h5file.create_dataset("x", data=numpy.arange(400.0), chunks=(40,), compression="gzip")
        h5file.attrs["split"] = H5PYDataset.create_split_array({"all": {"x": (0, 400)}})
        place = x.id.get_chunk_info(3).byte_offset
    if is_joined:
        path = tmp_path / "joined.hdf5"
        layout = h5py.VirtualLayout((400,), "float64")
        layout[:] = h5py.VirtualSource("part.hdf5", "x", (400,))
        with h5py.File(path, "w", libver="latest") as h5file:
            h5file.create_virtual_dataset("x", layout)
            h5file.attrs["split"] = H5PYDataset.create_split_array({"all": {"x": (0, 400)}})
    with open(part, "r+b") as file:
        file.seek(place)
        file.write(bytes(30))

    assert main([str(path)]) == 1
    assert f"{part}: /x cannot be read: " in capsys.readouterr().err


def test_damage_of_shapes_is_said_with_the_part_where_it_is(tmp_path, capsys):
    with h5py.File(tmp_path / "part.hdf5", "w") as h5file:
        x = h5file.create_dataset("x", (400,), dtype=h5py.vlen_dtype("i2"))
        for number in range(400):
            x[number] = [number]
        shapes = h5file.create_dataset(
            "s", data=numpy.ones((400, 1), "i4"), chunks=(40, 1), compression="gzip"
        )
        shapes.make_scale("shapes")
        x.dims[0].attach_scale(shapes)
        h5file.attrs["split"] = H5PYDataset.create_split_array({"all": {"x": (0, 400)}})
        place = shapes.id.get_chunk_info(3).byte_offset
    convert(["join", str(tmp_path / "part.hdf5"), "-o", str(tmp_path), "-r", "all"])
    with h5py.File(tmp_path / "all.hdf5", "r+") as h5file:
        del h5file.attrs["joined_parts"]
    with open(tmp_path / "part.hdf5", "r+b") as file:
        file.seek(place)
        file.write(bytes(10))

    assert main([str(tmp_path / "all.hdf5")]) == 1
    assert f"{tmp_path}/part.hdf5: /s cannot be read: " in capsys.readouterr().err


def test_a_filter_that_is_not_there_is_named_with_the_part(tmp_path, capsys, monkeypatch):
    digits = ["digits", "-o", str(tmp_path), "--compression", "gzip"]
    convert(digits)
    convert(["join", str(tmp_path / "digits.hdf5"), "-o", str(tmp_path), "-r", "all"])
    capsys.readouterr()
    # Of others the truth: hdf5plugin, if imported now, brings only filters that are not there.
    is_there = h5py.h5z.filter_avail
    monkeypatch.setattr(
        h5py.h5z, "filter_avail", lambda n: n != h5py.h5z.FILTER_DEFLATE and is_there(n)
    )

    for name in ("digits", "all"):
        assert main([str(tmp_path / f"{name}.hdf5")]) == 1
        error = capsys.readouterr().err
        assert "digits.hdf5: /features is compressed by deflate (number 1), which HDF5" in error
        assert "pip install hdf5plugin" in error


def test_the_range_of_vectors_in_the_other_byte_order_is_that_of_their_numbers(tmp_path, capsys):
    with h5py.File(tmp_path / "x.hdf5", "w") as h5file:
        x = h5file.create_dataset("x", (2,), h5py.vlen_dtype(numpy.dtype("u2").newbyteorder("S")))
        x[0] = x[1] = numpy.array([1, 2], x.dtype.metadata["vlen"])
        h5file.attrs["split"] = H5PYDataset.create_split_array({"all": {"x": (0, 2)}})

    assert main([str(tmp_path / "x.hdf5")]) == 0
    assert "from 1 to 2" in capsys.readouterr().out
