import pickle

from fuel_data.exceptions import AxisLabelsMismatchError, ConfigurationError, MissingInputFiles


def test_missing_files_are_listed_and_survive_a_pickle():
    error = MissingInputFiles("Files are missing in /data", (name for name in ("a.gz", "b.gz")))
    assert str(error) == "Files are missing in /data: a.gz, b.gz"
    assert pickle.loads(pickle.dumps(error)).filenames == ["a.gz", "b.gz"]


def test_errors_can_be_caught_as_what_they_are():
    assert issubclass(AxisLabelsMismatchError, ValueError)
    assert issubclass(ConfigurationError, AttributeError)
