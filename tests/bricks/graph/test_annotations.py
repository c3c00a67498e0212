import bricks.annotations
import bricks.graph.annotations


def test_annotations_are_found_where_blocks_had_them():
    assert bricks.graph.annotations.Annotation is bricks.annotations.Annotation
    assert bricks.graph.annotations.add_annotation is bricks.annotations.add_annotation
