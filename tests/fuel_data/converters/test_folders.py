from fuel_data.converters.folders import ImageTree, class_of, is_image


def make(top, *names):
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()


def test_images_are_listed_by_split_in_one_order(tmp_path):
    make(tmp_path, "b/y/1.png", "b/x/2.JPG", "b/x/1.tiff", "a/x/deep/3.webp", "a/x/4.txt")

    found = ImageTree(str(tmp_path)).find(["b", "a"])

    assert found == {"b": ["b/x/1.tiff", "b/x/2.JPG", "b/y/1.png"], "a": ["a/x/deep/3.webp"]}
    assert [class_of(name, "b") for name in found["b"]] == ["x", "x", "y"]


def test_without_splits_the_folders_are_classes(tmp_path):
    make(tmp_path, "x/1.png", "y/1.png")

    assert ImageTree(str(tmp_path)).find(None) == {"": ["x/1.png", "y/1.png"]}
    assert class_of("x/1.png", "") == "x"


def test_remarks_name_some_files_and_count_the_others(tmp_path, caplog):
    make(tmp_path, "x/1.png", *(f"x/{number}.txt" for number in range(1200)))
    tree = ImageTree(str(tmp_path))

    tree.find(None)
    tree.remarks.log()

    assert caplog.messages == [
        "fuel-convert image_folder: left out, not named like an image: x/0.txt, x/1.txt, "
        "x/10.txt, x/100.txt, x/1000.txt and 1,195 more"
    ]


def test_names_of_images_end_as_they_do():
    assert is_image("a.JPEG") and is_image("a/b.pgm")
    assert not is_image("jpg") and not is_image("a.jpg.txt")
