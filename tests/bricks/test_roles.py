"""Roles of variables: a tree of singletons."""

import pickle

from aesara import tensor

from bricks import roles
from bricks.roles import BIAS, COST, FILTER, INPUT, PARAMETER, PERSISTENT, WEIGHT


def test_add_role_keeps_only_the_most_specific_role_of_a_line():
    variable = tensor.matrix()

    roles.add_role(variable, PARAMETER)
    roles.add_role(variable, INPUT)
    roles.add_role(variable, FILTER)
    roles.add_role(variable, WEIGHT)

    assert variable.tag.roles == [INPUT, FILTER]


def test_add_role_to_a_copy_leaves_the_original_alone():
    variable = tensor.matrix()
    roles.add_role(variable, INPUT)
    copy = variable.clone()

    roles.add_role(copy, COST)

    assert variable.tag.roles == [INPUT]
    assert copy.tag.roles == [INPUT, COST]


def test_has_roles_counts_roles_that_descend_from_the_one_asked_for():
    variable = tensor.matrix()
    roles.add_role(variable, FILTER)

    assert roles.has_roles(variable, [PERSISTENT])
    assert roles.has_roles(variable, [COST, WEIGHT])
    assert not roles.has_roles(variable, [BIAS])
    assert not roles.has_roles(tensor.matrix(), [PARAMETER])


def test_has_roles_with_match_all_wants_each():
    variable = tensor.matrix()
    roles.add_role(variable, WEIGHT)

    assert not roles.has_roles(variable, [COST, WEIGHT], match_all=True)
    roles.add_role(variable, COST)
    assert roles.has_roles(variable, [COST, WEIGHT], match_all=True)


def test_every_role_is_equal_to_itself_after_unpickling_and_hashes_alike():
    constants = [getattr(roles, name) for name in roles.__all__ if name.isupper()]
    copies = pickle.loads(pickle.dumps(constants))

    assert copies == constants
    assert len({*constants, *copies}) == len(constants)
    assert WEIGHT != FILTER


def test_a_role_is_shown_by_the_name_of_its_constant():
    for name in roles.__all__:
        if name.isupper():
            assert repr(getattr(roles, name)) == name
