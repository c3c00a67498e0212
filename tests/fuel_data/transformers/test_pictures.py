import pytest

from fuel_data.transformers.pictures import DecodedInTurn


@pytest.mark.parametrize("num_threads", [1, 2, 5, 40])
def test_a_batch_is_decoded_in_order_and_anew_whenever_it_is_read(num_threads):
    batch = DecodedInTurn(lambda number: number**2, 20, num_threads)

    assert len(batch) == 20
    for _ in range(2):
        assert list(batch) == [number**2 for number in range(20)]
    assert list(DecodedInTurn(lambda number: number, 0, num_threads)) == []


@pytest.mark.parametrize(("num_threads", "most"), [(1, 1), (2, 4), (3, 6)])
def test_only_a_few_are_decoded_ahead(num_threads, most):
    begun = []
    decoded = iter(DecodedInTurn(begun.append, 20, num_threads))

    for taken in range(5):
        next(decoded)
        assert len(begun) <= taken + most
    decoded_all = list(decoded)

    assert len(decoded_all) == 15
    assert sorted(begun, key=str) == sorted(range(20), key=str)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_an_error_comes_at_the_image_that_has_it(num_threads):
    def decode(number):
        if number == 7:
            raise ValueError("number 7")
        return number

    decoded = iter(DecodedInTurn(decode, 20, num_threads))

    assert [next(decoded) for _ in range(7)] == list(range(7))
    with pytest.raises(ValueError, match="number 7"):
        next(decoded)
