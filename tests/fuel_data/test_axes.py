from fuel_data.axes import labels_of, with_batch, without_batch
from fuel_data.datasets import IndexableDataset


def test_the_batch_axis_is_put_on_and_taken_off():
    batches = {"x": ("batch", "time"), "y": ("batch",), "z": None}
    examples = {"x": ("time",), "y": (), "z": None}
    assert without_batch(batches) == examples
    assert with_batch(examples) == batches


def test_no_labels_stay_no_labels():
    assert without_batch(None) is with_batch(None) is None


def test_labels_are_those_of_the_sources_that_were_chosen():
    labels = {"x": ("batch",), "y": None}
    dataset = IndexableDataset({"x": [1], "y": [2], "z": [3]}, axis_labels=labels)
    assert labels_of(dataset) == labels
    dataset.sources = ("z", "x")
    assert labels_of(dataset) == {"x": ("batch",)}
    assert dataset.axis_labels == labels
    assert labels_of(IndexableDataset({"x": [1]})) is labels_of(None) is None
