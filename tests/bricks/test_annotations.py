"""Annotations of variables."""

import pytest
from aesara import tensor

from bricks.annotations import Annotation, add_annotation, get_annotations
from bricks.roles import AUXILIARY, COST


class Note(Annotation):
    def __init__(self, text):
        super().__init__()
        self.text = text

    def __repr__(self):
        return f"Note({self.text})"


def test_a_second_annotation_of_the_same_class_is_refused_in_words():
    variable = tensor.matrix("x")
    add_annotation(variable, Note("first"))

    with pytest.raises(
        ValueError, match=r"x is annotated by Note\(first\) already.*Note\(second\)"
    ):
        add_annotation(variable, Note("second"))


def test_the_same_annotation_may_be_added_twice_and_another_class_beside_it():
    variable, note, other = tensor.matrix(), Note("one"), Annotation()

    for annotation in (note, note, other):
        add_annotation(variable, annotation)

    assert get_annotations(variable) == [note, other]


def test_annotating_a_copy_leaves_the_original_alone():
    variable, note = tensor.matrix(), Note("one")
    add_annotation(variable, note)

    add_annotation(variable.clone(), Annotation())

    assert get_annotations(variable) == [note]


def test_auxiliary_variables_get_name_roles_and_annotation():
    note, variable = Note("one"), tensor.scalar()

    note.add_auxiliary_variable(variable, roles=[COST], name="norm")

    assert note.auxiliary_variables == [variable]
    assert (variable.name, variable.tag.name) == ("norm", "norm")
    assert variable.tag.roles == [AUXILIARY, COST]
    assert get_annotations(variable) == [note]


def test_updates_of_an_annotation_are_collected_in_order():
    note, a, b = Note("one"), tensor.scalar("a"), tensor.scalar("b")

    note.add_updates([(a, b)])
    note.add_updates({b: a})

    assert list(note.updates.items()) == [(a, b), (b, a)]
