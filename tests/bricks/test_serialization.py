import io
import os
import pickle
import subprocess
import sys
import tarfile
from collections import OrderedDict

import numpy
import pytest
from aesara import tensor
from aesara.graph.basic import graph_inputs, io_toposort

from bricks import pickling, xla
from bricks.archive import Archive, ArchiveWriter, DamagedArchive, ForeignFile
from bricks.pickling import NotPicklable
from bricks.serialization import (
    DEFAULT_PROTOCOL,
    add_to_dump,
    continue_training,
    dump,
    dump_and_add_to_dump,
    load,
    load_parameters,
    load_state,
    secure_dump,
)
from bricks.state import get_state, set_state

WEIGHTS = "/mlp/linear_0.W"
VELOCITY = "algorithm/step_rule.velocity[/mlp/linear_0.W]"


class Model:
    """Stands for a model and for an algorithm: they only have to name their variables."""

    def __init__(self, seed):
        rng = numpy.random.default_rng(seed)
        self.W, self.mean, self.velocity = (
            xla.shared(rng.standard_normal((20, 30)).astype("float32")) for _ in range(3)
        )

    def get_parameter_dict(self):
        return OrderedDict({WEIGHTS: self.W})

    def get_persistent_dict(self):
        return OrderedDict({"/mlp/bn.mean": self.mean})

    def get_state_variables(self):
        return OrderedDict({VELOCITY: self.velocity})


class Part:
    """Stands for a log, an extension or an iterator."""

    def __init__(self, name, state):
        self.name, self.state = name, state
        self.epochs_begun = 0

    def get_state(self):
        return self.state

    def set_state(self, state):
        self.state = state

    def digest(self):
        return self.name

    def get_epoch_iterator(self, as_dict=False, epoch=None):
        return Part("iterator", None)


class Loop:
    def __init__(self, seed=0):
        self.model = self.algorithm = Model(seed)
        self.log = Part("log", {"cost": [0.1, float("nan"), float("-inf")], "seed": seed})
        self.data_stream = Part("stream", None)
        position = {"epoch": 1, "index": 3, "key": numpy.arange(4, dtype="u4")}
        self.epoch_iterator = Part("iterator", position)
        self.extensions = [Part("best", {"cost": 0.25, "weights": numpy.ones(3)})]
        self.shared_twice = [self.model.W, self.model.W]

    def run(self):
        self.model.W.set_value(self.model.W.get_value() + 1)
        dump(self, "continued.zip")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint.zip"


def same(first, second):
    """Compare two states bit by bit."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, numpy.ndarray):
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
    return repr(first) == repr(second)


def test_anyone_with_numpy_reads_the_parameters_by_their_paths(path):
    loop = Loop()
    dump(loop, path)

    with numpy.load(path) as arrays:
        numpy.testing.assert_array_equal(arrays[WEIGHTS], loop.model.W.get_value())


def test_the_whole_state_comes_back_by_name_bit_for_bit(path):
    loop, other = Loop(0), Loop(1)
    dump(loop, path)

    state = load_state(path)
    assert same(state, get_state(loop))
    set_state(other, state)
    assert same(get_state(other), get_state(loop))


def test_the_pickled_loop_comes_back_with_its_state(path):
    loop = Loop()
    dump(loop, path)

    loaded = load(path)
    assert same(get_state(loaded), get_state(loop))
    assert loaded.shared_twice[0] is loaded.shared_twice[1] is loaded.model.W


def test_every_array_is_stored_once(path):
    loop = Loop()
    loop.big = [numpy.zeros(1000)] * 2
    loop.model.big = loop.big[0]
    dump(loop, path)

    with Archive(path) as archive:
        stored = [name for name in archive.names() if name.startswith("pickled/")]
        assert stored == ["pickled/0"]
        assert len(archive.member("main_loop.pkl")) < loop.big[0].nbytes / 2
    loaded = load(path)
    assert loaded.big[0] is loaded.big[1]
    loaded.big[0][...] = 1


def test_plain_pickle_says_where_the_arrays_are(path):
    dump(numpy.zeros(1000), path)

    with Archive(path) as archive, pytest.raises(pickle.UnpicklingError, match="'pickled/0' is in"):
        pickle.loads(archive.member("object.pkl"))


def test_unpickling_is_not_needed_for_the_state(path):
    loop = Loop()
    loop.forbidden = Forbidden()
    dump(loop, path)

    assert load_state(path)["log"]["seed"] == 0
    assert list(load_parameters(path)) == [WEIGHTS]
    with pytest.raises(AssertionError, match="unpickled"):
        load(path)


class Forbidden:
    def __setstate__(self, state):
        raise AssertionError("unpickled")

    def __getstate__(self):
        return {"a": 1}


def test_the_manifest_says_how_the_checkpoint_was_made(path):
    dump(Loop(), path)

    with Archive(path) as archive:
        manifest = archive.manifest
    assert manifest["libraries"]["numpy"] == numpy.__version__
    assert manifest["python"] == ".".join(map(str, sys.version_info[:3]))
    assert manifest["command"] == sys.orig_argv
    assert manifest["state"]["persistent"] == {"/mlp/bn.mean": "persistent/mlp/bn.mean"}


def test_other_versions_at_resumption_are_one_warning_that_names_them(path, monkeypatch):
    monkeypatch.setattr("bricks.provenance.platform.python_version", lambda: "3.10.99")
    dump(Loop(), path)
    monkeypatch.undo()

    for read in (load, load_state):
        with pytest.warns(UserWarning, match=r"made with python 3\.10\.99 \(now 3\..*last bits"):
            read(path)


def test_a_loop_can_be_saved_without_its_pickle(path):
    dump(Loop(), path, save_main_loop=False)

    with pytest.raises(KeyError, match="no pickled main loop: it was saved without one.*restore"):
        load(path)


def test_a_loop_that_cannot_be_pickled_is_saved_by_name_and_the_culprit_is_named(path):
    loop = Loop()
    loop.extensions[0].function = lambda x: x
    with pytest.warns(UserWarning, match=r"without the pickled main_loop.*<lambda>.*line \d+"):
        dump(loop, path)

    assert same(load_state(path), get_state(loop))
    with pytest.raises(KeyError, match="no pickled main loop: Loop cannot be pickled.*restore"):
        load(path)


def test_a_graph_of_any_depth_can_be_pickled(path):
    x = tensor.vector("x")
    y = x
    for _ in range(2000):
        y = tensor.tanh(y)
    y.name, y.tag.note = "y", {"about": y}
    before = sys.getrecursionlimit()
    dump([y, x], path)

    loaded_y, loaded_x = load(path)
    assert (loaded_y.name, loaded_x.name) == ("y", "x")
    assert loaded_y.tag.note["about"] is loaded_y
    assert list(graph_inputs([loaded_y])) == [loaded_x]
    assert len(io_toposort([loaded_x], [loaded_y])) == 2000
    assert sys.getrecursionlimit() == before


def test_a_graph_with_several_outputs_keeps_its_shape(path):
    x = tensor.matrix("x")
    first, second = tensor.max_and_argmax(x, axis=1)
    dump({"second": second, "first": first, "sum": first + second}, path)

    loaded = load(path)
    assert loaded["first"].owner is loaded["second"].owner
    assert loaded["sum"].owner.inputs[0] is loaded["first"]
    assert loaded["second"].owner.outputs == [loaded["first"], loaded["second"]]


def test_a_moved_class_is_found_at_its_new_place(path, monkeypatch):
    dump(Part("a", {}), path)
    old = f"{Part.__module__}.Part"
    monkeypatch.setitem(pickling.MOVED, old, f"{__name__}.Moved")

    assert type(load(path)) is Moved


class Moved(Part):
    pass


def test_a_class_that_is_gone_is_named_with_the_ways_out(path, monkeypatch):
    dump(Part("a", {}), path)
    monkeypatch.delattr(sys.modules[__name__], "Part")

    with pytest.raises(pickle.UnpicklingError, match=r"needs .*\.Part, .*MOVED.*restore"):
        load(path)


@pytest.mark.parametrize("package", ["numpy.core", "numpy._core"])
def test_small_arrays_pickled_by_either_numpy_are_loaded_without_a_warning(path, package):
    content = f"c{package}.numeric\n_frombuffer\n.".encode()
    with ArchiveWriter(path, {"kind": "object"}) as writer:
        writer.add_member("object.pkl", content)

    assert callable(load(path))


SCRIPT = """
import sys
import numpy
from bricks.serialization import dump
class Mine:
    pass
dump(Mine(), sys.argv[1])
"""


def run(script, *arguments, cwd=None):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )


def test_what_only_the_script_knows_is_named_when_saved_and_when_loaded(path):
    saved = run(SCRIPT, path)

    assert "UserWarning: the pickled object" in saved.stderr
    assert "__main__.Mine" in saved.stderr and "main_loop.restore(path)" in saved.stderr
    with pytest.raises(pickle.UnpicklingError, match="__main__.Mine.*script that wrote.*restore"):
        load(path)


def test_the_object_that_was_dumped_and_those_that_were_added_are_loaded_by_name(path):
    dump_and_add_to_dump({"a": 1}, path, to_add={"extra": [1, 2]})
    add_to_dump(numpy.arange(1000), path, "numbers")

    assert load(path) == load(path, "_pkl") == {"a": 1}
    assert load(path, "extra") == [1, 2]
    assert load(path, "numbers").sum() == 499500
    with pytest.raises(KeyError, match="no 'extras'.*'extra'"):
        load(path, "extras")
    with pytest.raises(ValueError, match="two members called 'extra.pkl'"):
        add_to_dump(1, path, "extra")
    assert load(path, "extra") == [1, 2]


def test_parameters_of_an_object_are_stored_by_name_and_by_reference(path):
    W = xla.shared(numpy.arange(500.0), name="W")
    dump({"W": W}, path, parameters=[W])

    numpy.testing.assert_array_equal(load_parameters(path)["W"], numpy.arange(500.0))
    numpy.testing.assert_array_equal(load(path)["W"].get_value(), numpy.arange(500.0))
    with pytest.raises(ForeignFile, match="no main loop but object"):
        load_state(path)


def test_an_object_that_cannot_be_pickled_is_an_error_and_leaves_the_old_file(path):
    dump(1, path)

    with pytest.raises(NotPicklable, match=r"function cannot be pickled.*<lambda>.*line \d+"):
        dump(lambda: None, path)
    assert load(path) == 1
    assert os.listdir(path.parent) == [path.name]


def test_open_files_work_as_they_did_in_blocks(path):
    with open(path, "wb") as file:
        dump([1, 2], file)
    with open(path, "rb") as file:
        assert load(file) == [1, 2]
    secure_dump([3], path)
    assert load(path) == [3]
    secure_dump([4], path, dump_function=pickle.dump)
    assert pickle.loads(path.read_bytes()) == [4]


def test_parameters_that_a_main_loop_does_not_have_are_refused(path):
    loop = Loop()
    dump(loop, path, parameters=[loop.model.W])

    with pytest.raises(ValueError, match="other of `parameters` belongs neither.*to_add="):
        dump(loop, path, parameters=[xla.shared(numpy.zeros(2), name="other")])


def test_an_unknown_keyword_is_refused(path):
    with pytest.raises(TypeError, match="unexpected keyword argument 'protocoll'"):
        secure_dump([1], path, protocoll=2)


def test_lost_values_are_refused_and_the_previous_checkpoint_stays(path, monkeypatch):
    loop = Loop()
    dump(loop, path)
    before = path.read_bytes()
    monkeypatch.setattr(xla, "state_is_lost", lambda variables: True)

    with pytest.raises(xla.DonatedStateLost, match="nothing to save.*last checkpoint"):
        dump(loop, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read", [load, load_parameters, load_state, continue_training])
def test_a_damaged_file_is_one_error_and_nothing_is_unpickled(path, read):
    loop = Loop()
    loop.forbidden = Forbidden()
    dump(loop, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b""
    path.write_bytes(content)

    with pytest.raises(DamagedArchive, match="checkpoint.zip is damaged"):
        read(path)


def test_a_changed_pickle_is_not_unpickled(path):
    loop = Loop()
    loop.forbidden = Forbidden()
    dump(loop, path)
    content = path.read_bytes()
    where = content.index(b"Forbidden")
    path.write_bytes(content[:where] + b"f" + content[where + 1 :])

    with pytest.raises(DamagedArchive, match="'main_loop.pkl'"):
        load(path)


def blocks_archive(path, name="_parameters", arrays=None):
    content = io.BytesIO()
    numpy.savez(content, **(arrays or {"|mlp|linear_0.W": numpy.eye(2)}))
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(content.getvalue())
        tar.addfile(info, io.BytesIO(content.getvalue()))


def test_parameters_of_an_archive_of_blocks_are_read_by_path(path):
    blocks_archive(path)

    assert list(load_parameters(path)) == ["/mlp/linear_0.W"]
    numpy.testing.assert_array_equal(load_parameters(path)["/mlp/linear_0.W"], numpy.eye(2))


def test_pickled_objects_in_an_archive_of_blocks_are_not_unpickled(path):
    blocks_archive(path, arrays={"a": numpy.array([Forbidden()], dtype=object)})

    with pytest.raises(DamagedArchive, match="allow_pickle"):
        load_parameters(path)


def test_other_tar_archives_and_other_files_are_foreign(path):
    blocks_archive(path, name="readme")
    with pytest.raises(ForeignFile, match="tar archive without parameters"):
        load_parameters(path)
    path.write_text("text")
    with pytest.raises(ForeignFile, match="no checkpoint"):
        load_parameters(path)


def test_training_is_continued_by_running_the_loaded_loop(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loop = Loop()
    dump(loop, path)

    continue_training(path)

    continued = load_parameters("continued.zip")[WEIGHTS]
    numpy.testing.assert_array_equal(continued, loop.model.W.get_value() + 1)


FULL_DISK = """
import resource, signal, sys
import numpy
from bricks.serialization import dump
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
dump(numpy.zeros(100_000), sys.argv[1])
"""


def test_a_full_disk_is_an_error_and_the_previous_checkpoint_still_loads(path):
    dump([1], path)

    result = run(FULL_DISK, path)

    assert result.returncode == 1
    assert "OSError" in result.stderr and "File too large" in result.stderr
    assert load(path) == [1]
    assert os.listdir(path.parent) == [path.name]


def test_the_protocol_has_the_name_that_blocks_gave_it(path):
    dump({"a": 1}, path, protocol=DEFAULT_PROTOCOL)

    assert load(path) == {"a": 1}
