import builtins

import PIL.Image
import pytest

from fuel_data.utils.pillow import import_pillow


def test_pillow_is_given_and_a_missing_one_is_named_with_the_way_to_get_it(monkeypatch):
    assert import_pillow("x") is PIL.Image
    import_ = builtins.__import__

    def without_pillow(name, *arguments):
        if name.startswith("PIL"):
            raise ImportError(name)
        return import_(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(
        ImportError, match="^Thumbnails needs Pillow: pip install 'firebrick.image.'"
    ):
        import_pillow("Thumbnails")
