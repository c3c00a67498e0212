from fuel_data.utils.names import nearest_name


def test_a_near_name_is_suggested():
    assert nearest_name("fetures", ["features", "targets"]) == " Did you mean 'features'?"


def test_all_names_are_listed_if_none_is_near():
    assert nearest_name("x", ["targets", "features"]) == " Known: features, targets."


def test_it_says_so_if_there_is_no_name():
    assert nearest_name("x", []) == " None is known."
