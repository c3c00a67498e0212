from fuel_data.axes import with_batch, without_batch


def test_the_batch_axis_is_put_on_and_taken_off():
    batches = {"x": ("batch", "time"), "y": ("batch",), "z": None}
    examples = {"x": ("time",), "y": (), "z": None}
    assert without_batch(batches) == examples
    assert with_batch(examples) == batches


def test_no_labels_stay_no_labels():
    assert without_batch(None) is with_batch(None) is None
