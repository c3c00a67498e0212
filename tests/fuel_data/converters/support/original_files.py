"""Small files in the formats of the published ones, made without the code under test.

The generator and the order of what it draws are fixed: the files are the same in every process.
"""

import gzip
import io
import struct
import tarfile
import zipfile

import h5py
import numpy
import PIL.Image
import scipy.io

NEAREST = PIL.Image.Resampling.NEAREST


def rng(seed=1):
    return numpy.random.default_rng(seed)


def pickle_of_python_2(values):
    """A pickle of protocol 2 as Python 2 and numpy 1 wrote it, texts as BINSTRING."""

    def text(value):
        content = value if isinstance(value, bytes) else value.encode()
        if len(content) < 256:
            return b"U" + bytes([len(content)]) + content
        return b"T" + struct.pack("<i", len(content)) + content

    def number(value):
        return b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)

    def array(value):
        dtype = b"cnumpy\ndtype\n" + text("u1") + number(0) + number(1) + b"\x87R"
        dtype += (
            b"(" + number(3) + text("|") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + number(0) + b"tb"
        )
        shape = number(value.shape[0]) + number(value.shape[1]) + b"\x86"
        made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + number(0) + b"\x85"
        state = b"(" + number(1) + shape + dtype + b"\x89" + text(value.tobytes()) + b"t"
        return made + text("b") + b"\x87R" + state + b"b"

    def any_of(value):
        if isinstance(value, numpy.ndarray):
            return array(value)
        if isinstance(value, list):
            return b"](" + b"".join(any_of(item) for item in value) + b"e"
        return number(value) if isinstance(value, int) else text(value)

    items = b"".join(text(key) + any_of(value) for key, value in values.items())
    return b"\x80\x02}(" + items + b"u."


def tar(members, packed=True):
    """A tar archive in GNU's format, with a folder in front of its members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in members.items():
            folder = name.rpartition("/")[0]
            if folder and folder not in archive.getnames():
                info = tarfile.TarInfo(folder)
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0) if packed else buffer.getvalue()


def zip_(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def image(height, width, seed, kind="JPEG"):
    """An encoded image of a smooth pattern."""
    small = rng(seed).integers(0, 256, (4, 4, 3), dtype="uint8")
    picture = PIL.Image.fromarray(small).resize((width, height), NEAREST)
    buffer = io.BytesIO()
    picture.save(buffer, kind)
    return buffer.getvalue()


def decoded(content):
    return numpy.asarray(PIL.Image.open(io.BytesIO(content)).convert("RGB")).transpose(2, 0, 1)


def cifar10(num=3, dumps=pickle_of_python_2):
    """Give the archive, and the pixels and labels of its six batches."""
    draw = rng(10)
    batches = [
        (draw.integers(0, 256, (num, 3072), dtype="uint8"), draw.integers(0, 10, num).tolist())
        for _ in range(6)
    ]
    names = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    members = {
        f"cifar-10-batches-py/{name}": dumps(
            {
                "batch_label": f"training batch {name}",
                "labels": labels,
                "data": pixels,
                "filenames": [f"thing_{number}.png" for number in range(num)],
            }
        )
        for name, (pixels, labels) in zip(names, batches, strict=True)
    }
    members["cifar-10-batches-py/batches.meta"] = pickle_of_python_2({"num_vis": 3072})
    return tar(members), batches


def cifar100(num=4, dumps=pickle_of_python_2):
    draw = rng(100)
    splits = {
        name: {
            "data": draw.integers(0, 256, (num, 3072), dtype="uint8"),
            "coarse_labels": draw.integers(0, 20, num).tolist(),
            "fine_labels": draw.integers(0, 100, num).tolist(),
        }
        for name in ("train", "test")
    }
    members = {f"cifar-100-python/{name}": dumps(of_split) for name, of_split in splits.items()}
    return tar(members), splits


def svhn_2(num):
    draw = rng(num)
    pixels = draw.integers(0, 256, (32, 32, 3, num), dtype="uint8")
    labels = draw.integers(1, 11, (num, 1)).astype("uint8")
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"X": pixels, "y": labels}, do_compression=True)
    return buffer.getvalue(), pixels, labels


def silhouettes(size=16, counts=(5, 4, 3), **options):
    """Images as rows of pixels, column by column."""
    draw = rng(size)
    arrays = {}
    for name, num in zip(("train", "val", "test"), counts, strict=True):
        arrays[f"{name}_data"] = draw.integers(0, 2, (num, size * size)).astype("uint8")
        arrays[f"{name}_labels"] = draw.integers(1, 102, (num, 1)).astype("uint8")
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays, **{"do_compression": True, **options})
    return buffer.getvalue(), arrays


def digit_struct(boxes):
    """The file of names and boxes that MATLAB 7.3 writes: one value plain, several by reference."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as h5file:
        refs, struct_ = h5file.create_group("#refs#"), h5file.create_group("digitStruct")
        names, places = [], []
        for number, of_image in enumerate(boxes, 1):
            characters = numpy.array([[ord(letter)] for letter in f"{number}.png"], "uint16")
            names.append([refs.create_dataset(f"name{number}", data=characters).ref])
            group = refs.create_group(f"bbox{number}")
            for field, values in of_image.items():
                if len(values) == 1:
                    group[field] = numpy.array([values], "float64")
                    continue
                references = [
                    [refs.create_dataset(f"{field}{number}_{place}", data=[[float(value)]]).ref]
                    for place, value in enumerate(values)
                ]
                group.create_dataset(field, data=references, dtype=h5py.ref_dtype)
            places.append([group.ref])
        struct_.create_dataset("name", data=names, dtype=h5py.ref_dtype)
        struct_.create_dataset("bbox", data=places, dtype=h5py.ref_dtype)
    return buffer.getvalue()


BOXES = [
    {"height": [5.0], "width": [4], "left": [-2], "top": [0], "label": [10]},
    {"height": [5, 6], "width": [4, 3], "left": [1, 7], "top": [2, 3], "label": [1, 9]},
]


def svhn_1(split, first):
    """An archive of two images, the second before the first, and what is in it."""
    pngs = [image(6 + first, 9, first, "PNG"), image(8, 7 + first, first + 1, "PNG")]
    members = {
        f"{split}/2.png": pngs[1],
        f"{split}/digitStruct.mat": digit_struct(BOXES),
        f"{split}/1.png": pngs[0],
    }
    return tar(members), pngs


def celeba():
    """The archive and the two texts, of five faces."""
    faces = {f"{number:06}.jpg": image(218, 178, number) for number in range(1, 6)}
    signs = rng(40).integers(0, 2, (5, 40))
    lines = ["5", " ".join(f"Attribute_{number}" for number in range(40))]
    lines += [
        f"{name} " + " ".join(f"{2 * sign - 1:2}" for sign in row)
        for name, row in zip(faces, signs, strict=True)
    ]
    partition = "".join(f"{name} {number}\n" for name, number in zip(faces, "00012", strict=True))
    archive = zip_({f"img_align_celeba/{name}": face for name, face in faces.items()})
    return archive, "\n".join(lines) + "\n", partition, list(faces.values()), signs


def dogs_vs_cats():
    """Kaggle's two archives: of six and of three photographs."""
    train = {
        f"train/{kind}.{number}.jpg": image(8 + number, 12, number)
        for kind in ("cat", "dog")
        for number in range(3)
    }
    test = {f"test1/{number}.jpg": image(9, 7 + number, number) for number in (10, 2, 1)}
    return zip_({"train/": b"", **train}), zip_({"test1/": b"", **test}), train, test


def ilsvrc(year):
    """The files of a year by name, and the images of its splits by name."""
    synsets = [
        (1, "n01", "owl", 0, 2),
        (2, "n02", "cup", 0, 3),
        (3, "n03", "thing", 2, 0),
    ]
    names = [f"ILSVRC{year}_ID", "WNID", "words", "num_children", "num_train_images"]
    kinds = [(names[0], "f8"), *((name, "O") for name in names[1:3])]
    kinds += [(name, "f8") for name in names[3:]]
    table = numpy.array(synsets, dtype=[(name, "O") for name, _ in kinds])[:, None]
    meta = io.BytesIO()
    scipy.io.savemat(meta, {"synsets": table}, do_compression=True)
    kit = f"ILSVRC{year}_devkit_t12" if year == 2012 else "devkit-1.0"
    devkit = {
        f"{kit}/data/meta.mat": meta.getvalue(),
        f"{kit}/data/ILSVRC{year}_validation_ground_truth.txt": b"2\n1\n",
    }
    train = {
        f"{wnid}_{number}.JPEG": image(10, 8 + number, number)
        for wnid, count in (("n01", 2), ("n02", 3))
        for number in range(count)
    }
    valid = {f"ILSVRC{year}_val_{n:08}.JPEG": image(7, 7, n) for n in (2, 1)}
    test = {f"ILSVRC{year}_test_{n:08}.JPEG": image(6, 9, n) for n in (1, 2, 3)}
    stored = dict(train)
    files = {}
    if year == 2010:
        # One is packed once more, one is damaged and comes anew with the patches.
        stored["n02_1.JPEG"] = gzip.compress(train["n02_1.JPEG"], mtime=0)
        stored["n02_2.JPEG"] = b"damaged"
        files["patch_images.tar"] = tar({"patch/train/n02_2.JPEG": train["n02_2.JPEG"]}, False)
        files["ILSVRC2010_test_ground_truth.txt"] = b"1\n2\n2\n"
    classes = {
        f"{wnid}.tar": tar({n: c for n, c in stored.items() if n.startswith(wnid)}, False)
        for wnid in ("n01", "n02")
    }
    stem = "img" if year == 2012 else "images"
    files[f"ILSVRC{year}_{stem}_train.tar"] = tar(classes, False)
    files[f"ILSVRC{year}_{stem}_val.tar"] = tar({f"val/{n}": c for n, c in valid.items()}, False)
    files[f"ILSVRC{year}_{stem}_test.tar"] = tar({f"test/{n}": c for n, c in test.items()}, False)
    kit_name = "devkit_t12" if year == 2012 else "devkit-1.0"
    files[f"ILSVRC{year}_{kit_name}.tar.gz"] = tar(devkit)
    return files, {"train": train, "valid": valid, "test": test}


def amat(num, seed):
    pixels = rng(seed).integers(0, 2, (num, 784))
    return "".join(" ".join(map(str, row)) + "\n" for row in pixels).encode(), pixels
