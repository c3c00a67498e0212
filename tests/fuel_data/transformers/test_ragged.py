import numpy

from fuel_data.transformers.ragged import each_element, ragged


def test_ragged_keeps_arrays_of_one_shape_apart():
    assert ragged([numpy.ones(2), numpy.ones(2)]).shape == (2,)


def test_each_element_goes_into_ragged_sources():
    data = ragged([numpy.ones(2), numpy.ones(3)])
    doubled = each_element(lambda array: 2 * array, data)
    assert [row.tolist() for row in doubled] == [[2, 2], [2, 2, 2]]
    assert each_element(len, [1, 2]) == 2
    assert each_element(len, [numpy.ones(2), numpy.ones(1)]) == [2, 1]
