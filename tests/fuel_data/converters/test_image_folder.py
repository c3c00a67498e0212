import hashlib
import json
import os

import h5py
import numpy
import original_files as original
import PIL.Image
import pytest
from numpy.testing import assert_array_equal

from fuel_data.commands.convert import main
from fuel_data.converters.image_folder import convert_image_folder
from fuel_data.datasets.hdf5 import H5PYDataset


@pytest.fixture
def folder(tmp_path):
    """Two splits of two classes; a class has a folder inside, and a file that is no image."""
    images = {
        "train/owl/b.jpg": original.image(10, 12, 1),
        "train/owl/a.PNG": original.image(9, 9, 2, "PNG"),
        "train/cup/deep/er/c.jpeg": original.image(8, 20, 3),
        "test/owl/d.jpg": original.image(30, 10, 4),
        "test/cup/e.jpg": original.image(7, 7, 5),
    }
    top = tmp_path / "birds"
    for name, content in {**images, "train/owl/notes.txt": b"no image"}.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return top, images


ORDER = ["train/cup/deep/er/c.jpeg", "train/owl/a.PNG", "train/owl/b.jpg"]
ORDER += ["test/cup/e.jpg", "test/owl/d.jpg"]


def test_folders_of_splits_and_classes_become_splits_and_targets(folder, tmp_path, capsys):
    top, images = folder
    arguments = ["-d", str(top), "-o", str(tmp_path), "--splits", "train", "test"]

    assert main(["image_folder", *arguments, "-r", "birds"]) == 0

    dataset = H5PYDataset(tmp_path / "birds.hdf5", ("train", "test"))
    dataset.open()
    found = dict(zip(dataset.sources, dataset.get_data(None, slice(0, 5)), strict=True))
    dataset.close(None)
    assert_array_equal(found["filenames"][:, 0], [name.encode() for name in ORDER])
    assert_array_equal(found["targets"][:, 0], [0, 1, 1, 0, 1])
    for got, name in zip(found["image_features"], ORDER, strict=True):
        assert_array_equal(got, original.decoded(images[name]))
    assert found["targets"].dtype == "uint8"
    assert dataset.axis_labels["image_features"] == ("batch", "channel", "height", "width")
    with h5py.File(tmp_path / "birds.hdf5") as h5file:
        assert h5file["class_names"].asstr()[()].tolist() == ["cup", "owl"]
        test = h5file.attrs["split"][h5file.attrs["split"]["split"] == b"test"]
        assert set(test["start"]) == {3} and set(test["stop"]) == {5}
        lines = "".join(
            f"{hashlib.sha256(images[name]).hexdigest()}  {name}\n" for name in sorted(images)
        )
        digest = hashlib.sha256(lines.encode()).hexdigest()
        assert json.loads(h5file.attrs["fuel_convert_inputs"]) == {"5 images in birds": digest}


def test_images_are_scaled_to_cover_a_size_and_cut_in_the_middle(tmp_path):
    """A white strip in the middle of a wide picture fills the square; its ends are cut off."""
    pixels = numpy.zeros((20, 60, 3), "uint8")
    pixels[:, 20:40] = 255
    (tmp_path / "in" / "strip").mkdir(parents=True)
    PIL.Image.fromarray(pixels).save(tmp_path / "in" / "strip" / "x.png")

    (path,) = convert_image_folder(tmp_path / "in", tmp_path, size=(10, 10), color="grey")

    with h5py.File(path) as h5file:
        assert h5file["features"].shape == (1, 1, 10, 10)
        assert h5file["features"][0, 0, :, 1:9].min() > 240
        assert [dim.label for dim in h5file["features"].dims][1:] == ["channel", "height", "width"]
        assert h5file.attrs["split"]["split"].tolist() == [b"all"] * 3


def test_a_picture_taken_sideways_is_turned(tmp_path):
    (tmp_path / "in" / "x").mkdir(parents=True)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.new("RGB", (30, 10)).save(tmp_path / "in" / "x" / "a.jpg", exif=exif)

    (path,) = convert_image_folder(tmp_path / "in", tmp_path)

    with h5py.File(path) as h5file:
        assert h5file["image_features_shapes"][()].tolist() == [[3, 30, 10]]


def test_files_may_stay_as_they_are(folder, tmp_path):
    top, images = folder
    (path,) = convert_image_folder(top, tmp_path, splits=("test", "train"), encoded=True)

    with h5py.File(path) as h5file:
        assert [bytes(content) for content in h5file["encoded_images"]] == [
            images[name] for name in ORDER[3:] + ORDER[:3]
        ]


def test_fractions_cut_the_shuffled_images(folder, tmp_path):
    top, _ = folder
    arguments = ["-d", str(top / "train"), "-o", str(tmp_path)]
    command = ["image_folder", *arguments, "--fractions", "train=0.67", "test=0.33"]

    assert main(command) == 0
    first = (tmp_path / "image_folder.hdf5").stat().st_size
    with h5py.File(tmp_path / "image_folder.hdf5") as h5file:
        names = h5file["filenames"][:, 0].tolist()
        stops = {row["split"]: row["stop"] for row in h5file.attrs["split"]}
    assert stops == {b"train": 2, b"test": 3} and first
    assert sorted(names) == [b"cup/deep/er/c.jpeg", b"owl/a.PNG", b"owl/b.jpg"]


def test_the_same_folder_gives_the_same_bytes(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    top, images = folder
    command = ["image_folder", "-d", str(top), "-o", str(tmp_path), "--splits", "train", "test"]
    main(command)
    first = (tmp_path / "image_folder.hdf5").read_bytes()
    # Another order on the disk is no other folder.
    for name in reversed(images):
        os.unlink(top / name)
        (top / name).write_bytes(images[name])
    main(command)

    assert (tmp_path / "image_folder.hdf5").read_bytes() == first


def test_a_damaged_image_is_named_or_left_out(folder, tmp_path, capsys, caplog):
    top, images = folder
    (top / "train/owl/b.jpg").write_bytes(images["train/owl/b.jpg"][:-60])
    (top / "test/cup/e.jpg").write_bytes(b"no image")
    command = ["image_folder", "-d", str(top), "-o", str(tmp_path), "--splits", "train", "test"]

    assert main(command) == 1
    error = capsys.readouterr().err
    assert f"{top}/train/owl/b.jpg is a damaged image" in error
    assert error.endswith(". Or leave out what cannot be read, by --skip-damaged.\n")
    assert not (tmp_path / "image_folder.hdf5").exists()

    assert main([*command, "--skip-damaged"]) == 0
    assert "left out: " in caplog.text and "e.jpg is no image that Pillow can read" in caplog.text
    with h5py.File(tmp_path / "image_folder.hdf5") as h5file:
        assert_array_equal(h5file["targets"][:, 0], [0, 1, 1])


def test_classes_may_be_links_and_circles_end(tmp_path, caplog):
    elsewhere, top = tmp_path / "elsewhere", tmp_path / "top"
    for place in (elsewhere / "deep", top / "cats"):
        place.mkdir(parents=True)
        (place / "a.png").write_bytes(original.image(5, 5, 1, "PNG"))
    for name in ("dogs", "hounds"):
        (top / name).symlink_to(elsewhere)
    (elsewhere / "round").symlink_to(elsewhere)
    (top / "cats" / "up").symlink_to(top)

    (path,) = convert_image_folder(top, tmp_path)

    with h5py.File(path) as h5file:
        assert list(h5file["class_names"].asstr()) == ["cats", "dogs", "hounds"]
        assert h5file["filenames"][:, 0].tolist() == [
            b"cats/a.png",
            b"dogs/deep/a.png",
            b"hounds/deep/a.png",
        ]
    assert not caplog.records


def said(caplog):
    start = "fuel-convert image_folder: "
    return [record.getMessage().removeprefix(start) for record in caplog.records]


def test_what_is_left_out_is_named_with_the_reason(folder, tmp_path, caplog):
    top, images = folder
    content = images["test/cup/e.jpg"]
    hidden = ["train/owl/._b.jpg", ".trash/owl/x.jpg", "train/.hidden/x.jpg"]
    stray = ["train/x.jpg", "train/y.JPG", "z.png", *(f"test/{name}.jpg" for name in "abc")]
    for name in (*hidden, *stray, "valid/owl/x.jpg", "train/owl/.DS_Store"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    (top / "test" / "empty").mkdir()
    (top / "train" / "owl" / "gone.txt").symlink_to("nowhere")

    (path,) = convert_image_folder(top, tmp_path, splits=("train/", "test"))

    assert said(caplog) == [
        "left out, a link that leads nowhere: train/owl/gone.txt",
        "left out, classes without an image: test/empty",
        "left out, hidden: .trash, train/.hidden, train/owl/._b.jpg",
        "left out, in no folder of a class: test/a.jpg, test/b.jpg, test/c.jpg, train/x.jpg, "
        "train/y.JPG and 1 more",
        "left out, no split of --splits: valid",
        "left out, not named like an image: train/owl/notes.txt",
    ]
    with h5py.File(path) as h5file:
        assert h5file["filenames"][:, 0].tolist() == [name.encode() for name in ORDER]
        assert set(h5file.attrs["split"]["split"]) == {b"train", b"test"}


def test_what_is_lost_of_an_image_is_named(tmp_path, caplog):
    top = tmp_path / "in" / "x"
    top.mkdir(parents=True)
    frames = [PIL.Image.new("RGB", (4, 3), color) for color in ("red", "blue", "green")]
    frames[0].save(top / "a.gif", save_all=True, append_images=frames[1:])
    PIL.Image.new("RGBA", (4, 3), (9, 8, 7, 0)).save(top / "b.png")
    frames[0].convert("P").save(top / "c.png", transparency=0)
    PIL.Image.new("CMYK", (4, 3), (0, 255, 255, 0)).save(top / "d.jpg", quality=100)

    (path,) = convert_image_folder(tmp_path / "in", tmp_path)

    assert said(caplog) == [
        "of several frames the first is taken: x/a.gif",
        "transparency is dropped: x/b.png, x/c.png",
    ]
    with h5py.File(path) as h5file:
        found = [image.reshape(3, 12)[:, 0].tolist() for image in h5file["image_features"]]
    red = [255, 0, 0]
    assert found[:3] == [red, [9, 8, 7], red]
    # Cyan 0, magenta and yellow in full is red, too.
    assert numpy.abs(numpy.subtract(found[3], red)).max() <= 2

    caplog.clear()
    convert_image_folder(tmp_path / "in", tmp_path, encoded=True)
    assert said(caplog) == []


def test_what_is_named_like_an_image_but_cannot_be_opened_is_refused_or_left_out(
    folder, tmp_path, caplog
):
    top, images = folder
    (top / "train/cup/gone.jpg").symlink_to("nowhere.jpg")

    with pytest.raises(ValueError, match=r"train/cup/gone.jpg is a link that leads nowhere. Move "):
        convert_image_folder(top, tmp_path, splits=("train",))
    (top / "train/cup/gone.jpg").unlink()
    # It would be waited for without end.
    os.mkfifo(top / "train/cup/pipe.jpg")
    with pytest.raises(ValueError, match=r"train/cup/pipe.jpg is no file. Move it away, or leave "):
        convert_image_folder(top, tmp_path, splits=("train",))
    (top / "train/owl/empty.jpg").touch()

    convert_image_folder(top, tmp_path, splits=("train",), skip_damaged=True)

    assert said(caplog)[0] == f"left out: {top}/train/owl/empty.jpg is empty, so it is no image."
    assert "left out, no file: train/cup/pipe.jpg" in said(caplog)


def test_a_folder_that_cannot_be_listed_is_refused_or_left_out(
    folder, tmp_path, caplog, monkeypatch
):
    top, images = folder
    listing = os.scandir

    def scandir(place):
        if os.fspath(place).endswith("deep"):
            raise PermissionError(13, "Permission denied", place)
        return listing(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(
        ValueError, match="train/cup/deep cannot be listed: Permission denied. Make it readable, "
    ):
        convert_image_folder(top, tmp_path, splits=("train",))

    convert_image_folder(top, tmp_path, splits=("train",), skip_damaged=True)
    assert "left out, cannot be listed (Permission denied): train/cup/deep" in said(caplog)
    assert "left out, classes without an image: train/cup" in said(caplog)


def test_names_may_be_of_any_letters_and_of_none(tmp_path):
    image = original.image(5, 5, 1, "PNG")
    for name in ("größe/猫.png", "größe/b b.PNG", "x/猫.png"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(image)
    odd = os.fsencode(tmp_path / "in") + b"/z\xff"
    os.mkdir(odd)
    with open(odd + b"/\xfe.png", "wb") as file:
        file.write(image)

    (path,) = convert_image_folder(tmp_path / "in", tmp_path)

    with h5py.File(path) as h5file:
        names = h5file["filenames"][:, 0].tolist()
        assert [name.decode("utf-8", "surrogateescape") for name in names] == [
            "größe/b b.PNG",
            "größe/猫.png",
            "x/猫.png",
            "z\udcff/\udcfe.png",
        ]
        assert h5file["targets"][:, 0].tolist() == [0, 0, 1, 2]
        assert [os.fsdecode(name) for name in h5file["class_names"]] == ["größe", "x", "z\udcff"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["--splits", "valid"],
            1,
            "valid is no folder. --splits names folders in that of -d.",
        ),
        (["--fractions", "a=0.5", "b=0.6"], 2, "must be positive and add up to 1"),
        (["--fractions", "a=0.5", "a=0.5"], 2, "takes NAME=PART, each name once"),
        (["--splits", "train", "--fractions", "a=1"], 2, "not both"),
        (["--splits", "train", ""], 2, "Every split needs a name; one of them is empty"),
        (["--encoded", "--size", "3", "3"], 2, "Files that stay encoded keep their size"),
        (["--size", "0", "3"], 2, "a height and a width of at least 1"),
        (["--fractions", "a=0.01", "b=0.99"], 1, "5 images leave none for a"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    folder, tmp_path, capsys, arguments, status, message
):
    top, _ = folder

    assert main(["image_folder", "-d", str(top), "-o", str(tmp_path), *arguments]) == status
    assert message in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named_with_the_way_out(tmp_path, capsys):
    assert main(["image_folder", "-d", str(tmp_path / "no"), "-o", str(tmp_path)]) == 1
    assert f"{tmp_path}/no is no folder. Say by -d in which folder" in capsys.readouterr().err


def test_a_fraction_without_a_name_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["image_folder", "--fractions", "=1"])
    assert "expected NAME=PART with a name, got '=1'" in capsys.readouterr().err


@pytest.mark.parametrize("how", [[], ["--encoded"], ["--size", "3", "3"]])
def test_what_is_not_compressed_is_said(folder, tmp_path, caplog, how):
    command = ["image_folder", "-d", str(folder[0]), "-o", str(tmp_path), "--splits", "train"]

    assert main([*command, *how, "--compression", "gzip"]) == 0

    said = [message for message in caplog.messages if "compress" in message]
    source = "encoded_images" if how == ["--encoded"] else "image_features"
    words = f"fuel-convert image_folder: warning: --compression does nothing for {source}: HDF5"
    assert [message.startswith(words) for message in said] == [True] * (how[:1] != ["--size"])
    caplog.clear()
    assert main([*command, *how]) == 0
    assert "compress" not in caplog.text


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no image in it. Expected CLASS/IMAGE, where"):
        convert_image_folder(tmp_path, tmp_path)
