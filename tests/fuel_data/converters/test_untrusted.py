"""Files made to do harm: what they ask for is refused before it happens."""

import gc
import gzip
import io
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import numpy
import original_files as original
import pytest
import scipy.io
from numpy.testing import assert_array_equal

from fuel_data.converters.archives import ZipImages, read_tar
from fuel_data.converters.images import decode_image
from fuel_data.converters.matlab import read_mat, read_mat_structures
from fuel_data.converters.pickles import load_plain_pickle

DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")


def peak_of(function):
    tracemalloc.start()
    try:
        function()
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def test_a_pickle_of_python_2_is_read():
    pixels = numpy.arange(60, dtype="uint8").reshape(3, 20)
    found = load_plain_pickle(
        original.pickle_of_python_2({"data": pixels, "labels": [1, 2, 300], "name": "x"}), "x"
    )

    assert_array_equal(found.pop("data"), pixels)
    assert found == {"labels": [1, 2, 300], "name": "x"}


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_of_python_3_is_read(protocol):
    draw = numpy.random.default_rng(0)
    arrays = {
        kind: draw.integers(0, 2, (3, 4)).astype(kind) for kind in (*DTYPES, "?", "f2", ">i4")
    }
    arrays |= {"F": numpy.asfortranarray(arrays["f8"]), "part": arrays["i8"][::2, ::3]}
    arrays |= {"none": numpy.zeros((0, 3)), "one": numpy.array(7, "u1")}
    fixed = arrays["u1"].copy()
    fixed.flags.writeable = False
    plain = {"texts": ["größe", "a\0b"], "nested": {"x": [1, -(2**70), 0.5, None, True, (1, 2)]}}
    plain |= {"bytes": bytes(range(256)), "empty": b"", "float": 1.5}
    values = {**arrays, "fixed": fixed, **plain, "numbers": list(numpy.arange(3)), b"key": 1}

    found = load_plain_pickle(pickle.dumps(values, protocol), "x")

    for name, array in (*arrays.items(), ("fixed", fixed)):
        assert_array_equal(found.pop(name), array, strict=True)
    assert found == {**plain, "numbers": [0, 1, 2], "key": 1}
    assert type(found["numbers"][0]) is int


class Harm:
    def __reduce__(self):
        return (print, ("harm",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"x": Harm()}, 2), "it asks for .*builtin.*print"),
        (b"\x80\x02cos\nsystem\nU\x04true\x85R.", "it asks for os.system"),
        (b"\x80\x02cnumpy\nload\nU\x01x\x85R.", "it asks for numpy.load"),
        (b"\x80\x02}U\x01a" + b"r\xff\xff\xff\x7f" + b"K\x01s.", "the memory 2147483647"),
        (pickle.dumps({"x": Harm()}, 4), "it asks for builtins.print"),
        (pickle.dumps({"x": bytearray(3)}, 4), "it asks for builtins.bytearray"),
        (pickle.dumps({"x": {1}}, 4), "the instruction EMPTY_SET"),
        (pickle.dumps({"x": numpy.array([{}])}, 4), "an array of dtype 'O8'"),
        (pickle.dumps({"x": numpy.array(["a"])}, 5), "an array of dtype 'U1'"),
        (pickle.dumps(pickle.PickleBuffer(b""), 5, buffer_callback=[].append), "NEXT_BUFFER"),
        (b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\3\0\0\0rot\x86R.", "another encoding"),
        (b"\x80\x03cbuiltins\nbytes\nJ\xff\xff\xff\x7f\x85R.", "another length than none"),
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "it asks for builtins.eval"),
        (b"\x80\x04\x8c\x07os.path\x8c\x09os.system\x93.", "it asks for os.path.os.system"),
        (b"\x80\x02cnumpy\ndtype\nN}X\4\0\0\0nameK\1s\x86b.", "it would change a function"),
        (b"\x80\x05\x96" + b"\xff" * 7 + b"\x0f.", "only 1 remain"),
        (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.", "only 1 remain"),
        (b"\x80\x04\x95" + b"\xff" * 7 + b"\x0fN.", "truncated|exhausted"),
        (b"\x80\x02K\x01.", "a int instead of a dict"),
        (b"", "pickle exhausted"),
        (
            original.pickle_of_python_2({"x": numpy.zeros((2, 2), "uint8")}).replace(
                b"K\x02K\x02\x86", b"K\x02J\xff\xff\xff\x7f\x86"
            ),
            "an array of shape .2, 2147483647. of 4 bytes",
        ),
        (
            original.pickle_of_python_2({"x": numpy.zeros((2, 2), "uint8")}).replace(b"u1", b"O8"),
            "an array of dtype 'O8'",
        ),
    ],
)
def test_a_pickle_that_asks_for_more_is_refused(capsys, content, message):
    with pytest.raises(ValueError, match=f"^x is not the pickle that was expected.*{message}"):
        load_plain_pickle(content, "x")
    assert capsys.readouterr().out == ""


def test_a_pickle_takes_no_more_memory_than_its_bytes_and_no_time_for_its_errors():
    text = b"X" + struct.pack("<I", 2**16) + b"a" * 2**16
    again = b"\x80\x02]c_codecs\nencode\nq\0" + text + b"\x85q\1R" + b"h\0h\1R" * 1000 + b"."
    # A tuple of two tuples of two tuples, and so on.
    shapes = b"\x80\x02cnumpy\ndtype\n)" + b"2\x86" * 64 + b"\x85R."

    def read():
        with pytest.raises(ValueError, match="more bytes than the file has"):
            load_plain_pickle(again, "x")
        with pytest.raises(ValueError, match="an array of dtype that is no text"):
            load_plain_pickle(shapes, "x")

    assert peak_of(read) < 2**20


def test_nothing_stays_of_a_pickle_that_is_refused():
    content = pickle.dumps({"x": numpy.arange(9)}, 4).replace(b"i8", b"O8")

    def refuse():
        with pytest.raises(ValueError, match="an array of dtype 'O8'"):
            load_plain_pickle(content, "x")
        gc.collect()
        return len(gc.get_objects())

    refuse()
    first = refuse()
    assert max(refuse() for _ in range(5)) < first + 10


def tar_of(*members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def member(name, size=0, **attributes):
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in attributes.items():
        setattr(info, key, value)
    return info


def test_members_stay_in_memory_and_links_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = tar_of(
        (member("../outside", 1), b"1"),
        (member("/tmp/absolute-of-firebrick", 1), b"2"),
        (member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
        (member("hard", type=tarfile.LNKTYPE, linkname="../outside"), b""),
        (member("pipe", type=tarfile.FIFOTYPE), b""),
    )

    found = dict(read_tar(io.BytesIO(content), "x"))

    assert found == {"../outside": b"1", "/tmp/absolute-of-firebrick": b"2"}
    assert list(tmp_path.iterdir()) == [] and not (tmp_path.parent / "outside").exists()


def with_size(content, size):
    """Write another size into the first header, and its check sum."""
    header = bytearray(content[:512])
    header[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content[512:]


@pytest.mark.parametrize(
    ("size", "message"),
    [(2**40, "says 1,099,511,627,776 bytes; at most"), (-512, "a header says -512 bytes")],
)
def test_the_size_of_a_member_is_checked_before_memory_is_taken(size, message):
    content = with_size(tar_of((member("a", 3), b"abc")), size)

    def read():
        with pytest.raises(ValueError, match=message):
            list(read_tar(io.BytesIO(content), "x"))

    assert peak_of(read) < 2**20


def test_members_do_not_lead_back():
    """An extended header says that the file has less than nothing: tarfile would go in circles."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member("a", 600, pax_headers={"size": "-2048"}), io.BytesIO(bytes(600)))

    with pytest.raises(ValueError, match="cannot be read as a tar archive"):
        list(read_tar(io.BytesIO(buffer.getvalue()), "x"))


def test_a_packed_archive_that_goes_on_for_ever_is_left(tmp_path):
    (tmp_path / "x").write_bytes(
        gzip.compress(tar_of((member("a", 1), b"1")) + bytes(2**26), compresslevel=1)
    )

    def read():
        with pytest.raises(ValueError, match="something follows its end"):
            list(read_tar(tmp_path / "x", "x"))

    assert peak_of(read) < 2**23


def test_the_size_in_a_zip_archive_is_checked_before_memory_is_taken(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(2**24))

    def read():
        with (
            ZipImages(tmp_path / "x.zip", limit=2**20) as archive,
            pytest.raises(ValueError, match="'a' says 16,777,216 bytes; at most 1,048,576"),
        ):
            archive.read("a")

    assert peak_of(read) < 2**20


def test_an_image_of_too_many_pixels_is_not_decoded():
    header = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", struct.pack(">IIBBBBB", 9000, 9000, 8, 2, 0, 0, 0)),):
        header += struct.pack(">I", len(content)) + kind + content
        header += struct.pack(">I", zlib.crc32(kind + content))

    with pytest.raises(ValueError, match="^x says that it has 9000 x 9000 pixels; at most"):
        decode_image(header + b"\0\0\0\0IDAT", "x")


def mat(arrays, **options):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("do_compression", [False, True])
def test_numbers_of_every_type_are_read_as_scipy_reads_them(tmp_path, do_compression):
    draw = numpy.random.default_rng(0)
    arrays = {f"v_{t}": draw.integers(0, 100, (3, 2, 5)).astype(t) for t in DTYPES}
    arrays |= {"text": "passed over", "empty": numpy.zeros((0, 3))}
    (tmp_path / "x.mat").write_bytes(mat(arrays, do_compression=do_compression))

    shapes = {name: (3, None, 5) for name in arrays if name.startswith("v_")}
    found = read_mat(tmp_path / "x.mat", {**shapes, "empty": (None, 3)})

    assert found["empty"].shape == (0, 3)
    for name in shapes:
        assert_array_equal(found[name], arrays[name])
        assert found[name].dtype == arrays[name].dtype


def test_a_file_of_the_other_end_with_small_values_is_read(tmp_path):
    """MATLAB on a big-endian machine keeps doubles that are small whole numbers as bytes."""

    def element(kind, content):
        return struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)

    variable = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 1, 3))
    variable += struct.pack(">HH4s", 1, 1, b"x") + element(2, bytes([7, 8, 9]))
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "x.mat").write_bytes(header + element(14, variable))

    assert read_mat(tmp_path / "x.mat", {"x": (1, 3)})["x"].tolist() == [[7.0, 8.0, 9.0]]
    assert scipy.io.loadmat(tmp_path / "x.mat")["x"].tolist() == [[7, 8, 9]]


def test_structures_are_read(tmp_path):
    rows = [(1, "n01", [1.0, 2.0]), (2, "größe", [3.0])]
    table = numpy.array(rows, dtype=[("id", "O"), ("name", "O"), ("list", "O")])[:, None]
    content = mat({"synsets": table})

    found = read_mat_structures(io.BytesIO(content), len(content), "x", "synsets")

    assert [synset["name"] for synset in found] == ["n01", "größe"]
    assert [synset["id"].item() for synset in found] == [1, 2]
    assert found[0]["list"].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[:-9], "it is cut short|an element"),
        (lambda c: c[:40], "it begins with b'MATLAB"),
        (lambda c: b"\x89HDF\r\n\x1a\n" + c[8:], "it is of version 7.3, an HDF5 file"),
        (lambda c: c + c[128:], "'x' stands there twice"),
        (lambda c: c[:128], "expected the variables x, which it lacks"),
        (
            lambda c: mat({"x": numpy.zeros((3, 3))}),
            "of shape .any, 2.; it is of class 6 and shape",
        ),
        (lambda c: mat({"x": "ab"}), "must be an array of numbers .* it is of class 4"),
    ],
)
def test_another_mat_file_is_refused_by_name(tmp_path, change, message):
    path = tmp_path / "x.mat"
    path.write_bytes(change(mat({"x": numpy.ones((4, 2))})))

    with pytest.raises(ValueError, match=f"^{path}.*({message})"):
        read_mat(path, {"x": (None, 2)})


def test_a_mat_file_that_lies_about_its_size_takes_no_memory(tmp_path):
    """Of 200 bytes, it says that they unpack to eight million numbers."""
    content = bytearray(mat({"x": numpy.ones((4, 2))}))
    place = content.index(struct.pack("<ii", 4, 2))
    content[place : place + 8] = struct.pack("<ii", 2**22, 2)
    packed = zlib.compress(bytes(content[128:]))
    path = tmp_path / "x.mat"
    path.write_bytes(bytes(content[:128]) + struct.pack("<II", 15, len(packed)) + packed)

    def read():
        with pytest.raises(ValueError, match="64 bytes of type 9 for the shape .4194304, 2."):
            read_mat(path, {"x": (None, 2)})

    assert peak_of(read) < 2**22


@pytest.mark.parametrize(
    "change", [lambda packed: packed[:-4], lambda packed: packed[:-4] + b"1234"]
)
def test_the_check_sum_of_a_packed_variable_is_looked_at(tmp_path, change):
    content = mat({"x": numpy.ones((4, 2))})
    packed = change(zlib.compress(content[128:]))
    path = tmp_path / "x.mat"
    path.write_bytes(content[:128] + struct.pack("<II", 15, len(packed)) + packed)

    with pytest.raises(ValueError, match=f"^{path} cannot be read as a MATLAB file"):
        read_mat(path, {"x": (None, 2)})
