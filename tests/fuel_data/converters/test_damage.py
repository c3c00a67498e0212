"""Files that were cut, or of which bits were flipped: an error in words, or the right data.

Each case is drawn from a generator of a seed that is the name of the format and the number of the
case, so that a failure can be seen again; `scripts/soak` runs ten times as many.
"""

import contextlib
import gzip
import hashlib
import signal
import zlib

import h5py
import numpy
import original_files as original
import pytest
from numpy.testing import assert_array_equal

from fuel_data.converters.archives import ZipImages, read_tar
from fuel_data.converters.binarized_mnist import convert_binarized_mnist
from fuel_data.converters.caltech101_silhouettes import convert_silhouettes
from fuel_data.converters.cifar10 import convert_cifar10
from fuel_data.converters.dogs_vs_cats import convert_dogs_vs_cats
from fuel_data.converters.idx import IdxFile, convert_idx
from fuel_data.converters.ilsvrc2012 import convert_ilsvrc2012
from fuel_data.converters.matlab import read_mat
from fuel_data.converters.pickles import load_plain_pickle
from fuel_data.converters.svhn import convert_svhn
from fuel_data.exceptions import MissingInputFiles

TIMEOUT_S = 5.0


def damaged(content, draw):
    """Cut a file, flip some bits, put zeros or other bytes into it, or double a part."""
    content = bytearray(content)
    kind = draw.integers(5)
    start = int(draw.integers(len(content)))
    stop = min(len(content), start + int(draw.integers(1, 64)))
    if kind == 0:
        del content[start:]
    elif kind == 1:
        for place in draw.integers(len(content), size=draw.integers(1, 9)):
            content[place] ^= 1 << int(draw.integers(8))
    elif kind == 2:
        content[start:stop] = bytes(stop - start)
    elif kind == 3:
        content[start:stop] = draw.bytes(stop - start)
    else:
        content[start:start] = content[start:stop]
    return bytes(content)


@contextlib.contextmanager
def time_limit():
    def stop(*_):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def content_of(path):
    """All that a converted file holds, as plain lists."""
    found = {}
    with h5py.File(path) as h5file:
        for name, dataset in h5file.items():
            values = dataset[()]
            found[name] = [numpy.asarray(value).tolist() for value in values]
        found["split"] = h5file.attrs["split"][["split", "source", "start", "stop"]].tolist()
    return found


class Case:
    """A format: the files of a small data set, which of them to damage, what converts them."""

    def __init__(self, name, files, convert, checked=True):
        self.name, self.files, self.convert, self.checked = name, files, convert, checked

    def run(self, folder, number, expected):
        draw = numpy.random.default_rng([*self.name.encode(), number])
        victim = sorted(self.files)[int(draw.integers(len(self.files)))]
        for name, content in self.files.items():
            (folder / name).write_bytes(damaged(content, draw) if name == victim else content)
        try:
            with time_limit():
                (path,) = self.convert(folder, folder)
        except (ValueError, MissingInputFiles):
            return "refused"
        # What has no check sum can be another picture, and no one can tell.
        assert not self.checked or content_of(path) == expected, (self.name, number, victim)
        return "right"


def idx_files():
    """Give images and labels, and what is known of the two files."""
    draw = numpy.random.default_rng(3)
    arrays = {
        "features": draw.integers(0, 256, (6, 5, 5), dtype="uint8"),
        "targets": draw.integers(0, 10, 6, dtype="uint8"),
    }
    contents, known = {}, []
    for source, array in arrays.items():
        content = b"\0\0\x08" + bytes([array.ndim])
        content += b"".join(bytes([0, 0, 0, n]) for n in array.shape) + array.tobytes()
        md5 = hashlib.md5(content).hexdigest()
        contents[source] = content
        known.append(IdxFile("train", source, source, array.shape, md5))
    return contents, known


IDX, KNOWN = idx_files()


def convert_idx_files(directory, output):
    return convert_idx(KNOWN, directory, output, "x.hdf5")


def silhouette_mat(version):
    options = {} if version == "packed" else {"do_compression": False}
    return original.silhouettes(16, **options)[0]


def cases():
    name = "caltech101_silhouettes_16_split1.mat"
    kaggle = dict(
        zip(
            ("dogs_vs_cats.train.zip", "dogs_vs_cats.test1.zip"),
            original.dogs_vs_cats()[:2],
            strict=True,
        )
    )
    svhn_1 = {
        f"{split}.tar.gz": original.svhn_1(split, 1)[0] for split in ("train", "test", "extra")
    }
    amats = {
        f"binarized_mnist_{split}.amat": original.amat(2, 5)[0]
        for split in ("train", "valid", "test")
    }
    packed = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in IDX.items()}
    yield Case("idx", IDX, convert_idx_files)
    yield Case("idx.gz", packed, convert_idx_files)
    yield Case(
        "cifar",
        {"cifar-10-python.tar.gz": original.cifar10(1)[0]},
        lambda a, b: convert_cifar10(a, b, any_version=True),
    )
    yield Case("svhn 1", svhn_1, lambda a, b: convert_svhn(1, a, b, any_version=True))
    yield Case(
        "silhouettes",
        {name: silhouette_mat("packed")},
        lambda a, b: convert_silhouettes(16, a, b, any_version=True),
    )
    yield Case("zip", kaggle, lambda a, b: convert_dogs_vs_cats(a, b, any_version=True))
    yield Case("tar", original.ilsvrc(2012)[0], ilsvrc, checked=False)
    yield Case(
        "plain mat",
        {name: silhouette_mat("plain")},
        lambda a, b: convert_silhouettes(16, a, b, any_version=True),
        checked=False,
    )
    yield Case(
        "amat", amats, lambda a, b: convert_binarized_mnist(a, b, any_version=True), checked=False
    )


def ilsvrc(directory, output):
    return convert_ilsvrc2012(directory, output, shuffle_seed=1, any_version=True)


CASES = {case.name: case for case in cases()}
NUM = {"svhn 1": 50, "tar": 70, "zip": 70}


def check(case, folder, numbers):
    # Whatever is found, one of each format must be right and most must be refused.
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    (path,) = case.convert(folder, folder)
    expected = content_of(path)
    outcomes = [case.run(folder, number, expected) for number in numbers]
    assert outcomes.count("refused") > 0.2 * len(outcomes)


@pytest.mark.parametrize("name", CASES)
def test_what_is_damaged_is_refused_or_read_right(tmp_path, name):
    check(CASES[name], tmp_path, range(NUM.get(name, 85)))


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_much_that_is_damaged_is_refused_or_read_right(tmp_path, name):
    check(CASES[name], tmp_path, range(10 * NUM.get(name, 85)))


def check_pickles(numbers):
    """Damage inside the pickle, where no check sum of an archive sees it."""
    draw = numpy.random.default_rng(8)
    values = {
        "data": draw.integers(0, 256, (2, 30), dtype="uint8"),
        "labels": [3, 1],
        "filenames": ["a.png", "b.png"],
    }
    content = original.pickle_of_python_2(values)
    for number in numbers:
        case = damaged(content, numpy.random.default_rng([80, number]))
        with time_limit(), contextlib.suppress(ValueError):
            found = load_plain_pickle(case, "x")
            assert isinstance(found, dict), number


def test_damaged_pickles_are_refused_or_plain():
    check_pickles(range(300))


@pytest.mark.soak
def test_many_damaged_pickles_are_refused_or_plain():
    check_pickles(range(3000))


def test_a_tar_archive_that_ends_early_is_not_taken_for_a_shorter_one(tmp_path):
    """Cut it at every block: tarfile itself is silent about half of these."""
    content = original.tar({"a": b"1" * 600, "b": b"2", "c": b"3" * 512}, packed=False)
    whole = [("a", b"1" * 600), ("b", b"2"), ("c", b"3" * 512)]
    path = tmp_path / "x.tar"
    for stop in range(0, len(content), 512):
        path.write_bytes(content[:stop])
        try:
            found = list(read_tar(path, "x.tar"))
        except ValueError:
            continue
        assert found == whole


def test_a_damaged_header_in_the_middle_is_no_end(tmp_path):
    content = bytearray(original.tar({"a": b"1", "b": b"2"}, packed=False))
    content[1024 + 148] ^= 1
    (tmp_path / "x.tar").write_bytes(content)

    with pytest.raises(ValueError, match="^x.tar cannot be read as a tar archive: .* damaged"):
        list(read_tar(tmp_path / "x.tar", "x.tar"))


def test_the_bytes_of_a_packed_archive_are_checked_at_its_end(tmp_path):
    content = original.tar({"a": bytes(range(256))})
    raw = bytearray(gzip.decompress(content))
    raw[600] ^= 1
    packed = zlib.compressobj(wbits=31)
    wrong = bytearray(packed.compress(raw) + packed.flush())
    wrong[-8:] = content[-8:]
    (tmp_path / "x").write_bytes(wrong)

    with pytest.raises(ValueError, match="CRC check failed"):
        list(read_tar(tmp_path / "x", "x"))


def test_numbers_are_read_as_scipy_reads_them(tmp_path):
    content, arrays = original.silhouettes(28)
    (tmp_path / "x.mat").write_bytes(content)
    found = read_mat(tmp_path / "x.mat", {name: values.shape for name, values in arrays.items()})

    assert list(found) == list(arrays)
    for name, values in arrays.items():
        assert_array_equal(found[name], values)


def test_members_of_a_zip_archive_have_check_sums(tmp_path):
    content = bytearray(original.zip_({"a.jpg": bytes(2000)}))
    content[content.index(b"a.jpg") + 6] ^= 1
    (tmp_path / "x.zip").write_bytes(content)

    with (
        ZipImages(tmp_path / "x.zip") as archive,
        pytest.raises(ValueError, match="cannot be read as a zip archive"),
    ):
        archive.read("a.jpg")
