import hashlib
import os
import subprocess
import sys
import time

import numpy
import pytest

from fuel_data.utils import digests
from fuel_data.utils.digests import (
    digest,
    file_digest,
    fingerprint,
    known_fingerprint,
    settled_version,
)


def test_the_order_of_keys_and_tuple_or_list_do_not_count():
    assert digest({"a": 1, "b": (2, 3)}) == digest({"b": [2, 3], "a": 1})


@pytest.mark.parametrize(
    "other",
    [
        {"x": numpy.array([1, 2], dtype="int32")},
        {"x": numpy.array([1, 3])},
        {"x": numpy.array([[1, 2]])},
        {"y": numpy.array([1, 2])},
    ],
)
def test_values_types_shapes_and_names_count(other):
    assert digest({"x": numpy.array([1, 2])}) != digest(other)


def test_numbers_of_numpy_count_as_those_of_python():
    assert digest([numpy.float32(0.5), numpy.int8(3), numpy.bool_(True)]) == digest([0.5, 3, True])


def test_the_padding_of_extended_precision_does_not_count():
    one, other = (numpy.full(1, fill, "u1").repeat(32).view("longdouble") for fill in (0, 255))
    one[:] = other[:] = 1.5
    assert digest(one) == digest(other)
    assert digest(one[0]) == digest(other[0]) != digest(numpy.longdouble(2))


def test_what_is_no_plain_data_is_refused():
    with pytest.raises(TypeError, match="expected plain data, got set"):
        digest({"x": {1}})
    with pytest.raises(TypeError, match="expected plain data, got ndarray"):
        digest(numpy.array([None]))


def test_the_digest_is_the_same_in_processes_with_different_hash_seeds():
    program = (
        "from fuel_data.utils.digests import digest\nprint(digest({'a': 1, 'b': [None, 2.5]}))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert printed == {digest({"a": 1, "b": [None, 2.5]})}


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")

    # RFC 1321 and FIPS 180-2 give these as examples.
    assert file_digest(tmp_path / "file", "md5") == "900150983cd24fb0d6963f7d28e17f72"
    assert file_digest(tmp_path / "file").startswith("ba7816bf8f01cfea")


def test_the_progress_of_a_digest_is_told_in_bytes(tmp_path):
    content = bytes(2**21 + 5)
    (tmp_path / "file").write_bytes(content)
    read = []

    found = file_digest(tmp_path / "file", progress=read.append)

    assert found == hashlib.sha256(content).hexdigest()
    assert len(read) > 1 and sum(read) == len(content)


def test_a_fingerprint_is_known_as_long_as_nobody_writes_the_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    os.utime(path, (10**9, 10**9))
    before = known_fingerprint(str(path))
    assert before == fingerprint(str(path))
    assert settled_version(path) is None, "it may be written again without another time"
    now = time.time_ns() + 10**10
    monkeypatch.setattr(digests.time, "time_ns", lambda: now)
    read = []
    monkeypatch.setattr(digests, "fingerprint", lambda path: read.append(path) or {"size": 3})

    for _ in range(3):
        known_fingerprint(str(path)).clear()
    assert known_fingerprint(str(path)) == {"size": 3}
    assert read == [str(path)]

    # Another content, of the same length and time.
    path.write_bytes(b"abd")
    os.utime(path, (10**9, 10**9))
    for _ in range(3):
        known_fingerprint(str(path))
    assert read == [str(path)] * 2


def test_versions_of_an_open_file_are_told_by_its_descriptor(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "_SETTLED_NANOSECONDS", -(10**10))
    (tmp_path / "old").write_bytes(b"abc")
    (tmp_path / "new").write_bytes(b"abc")
    with open(tmp_path / "old", "rb") as file:
        before = settled_version(file.fileno())
        assert before == settled_version(tmp_path / "old")
        (tmp_path / "new").replace(tmp_path / "old")
        assert settled_version(file.fileno())[1] == before[1]
        assert settled_version(tmp_path / "old")[1] != before[1]
