"""The images in a folder of classes, and what else is there."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
MAX_NAMED = 5

logger = logging.getLogger(__name__)


class Remarks:
    """What a person should know of some of the files, said once for each kind.

    Parameters
    ----------
    folder : str
        What their names are relative to.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._names: dict[str, set[str]] = {}

    def add(self, remark: str, path: str) -> None:
        """Remember a file or folder.

        Parameters
        ----------
        remark : str
            What there is to say, as in ``'left out, hidden'``.
        path : str
            Its path.
        """
        self._names.setdefault(remark, set()).add(os.path.relpath(path, self.folder))

    def log(self) -> None:
        """Write them to the log, as warnings, with the names of some."""
        for remark, names in sorted(self._names.items()):
            shown = ", ".join(sorted(names)[:MAX_NAMED])
            more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
            logger.warning("fuel-convert image_folder: %s: %s%s", remark, shown, more)


class ImageTree:
    """A folder with a folder for each class, or for each split and in that for each class.

    Parameters
    ----------
    folder : str
        The folder.
    skip_damaged : bool
        Whether to leave out what cannot be read, instead of refusing it.

    Attributes
    ----------
    remarks : Remarks
        What is left out, and why.
    """

    def __init__(self, folder: str, skip_damaged: bool = False) -> None:
        self.folder = folder
        self.skip_damaged = skip_damaged
        self.remarks = Remarks(folder)

    def find(self, splits: Sequence[str] | None) -> dict[str, list[str]]:
        """List the images of each split.

        Parameters
        ----------
        splits : sequence of str or None
            Folders of splits; None if there are only those of classes.

        Returns
        -------
        dict of str to list of str
            Split, ``''`` if there is none → the paths of its images in the folder, in an order
            that is always one.

        Raises
        ------
        ValueError
            If a split is no folder, a folder cannot be listed, or what is called as images are is
            no file.
        """
        found = {split: self._images(split) for split in splits or ("",)}
        if splits:
            _, folders, files = next(self._walk(self.folder), ("", [], []))
            self._note_files(self.folder, files)
            for name in set(folders) - {split.split(os.sep)[0] for split in splits}:
                self.remarks.add("left out, no split of --splits", os.path.join(self.folder, name))
        return found

    def _images(self, split: str) -> list[str]:
        top = os.path.join(self.folder, split)
        if not os.path.isdir(top):
            way_out = "--splits names folders in that of -d"
            if not split:
                way_out = "Say by -d in which folder those of the classes are"
            raise ValueError(f"{top.rstrip(os.sep)} is no folder. {way_out}.")
        found: list[str] = []
        classes: set[str] = set()
        for place, folders, files in self._walk(top):
            if place == top:
                classes.update(folders)
                self._note_files(place, files)
                continue
            paths = [os.path.join(place, name) for name in files]
            images = [path for path in paths if is_image(path)]
            self._note_others(set(paths) - set(images))
            found += [path for path in images if self._is_file(path)]
        relative = sorted(os.path.relpath(path, self.folder) for path in found)
        for name in classes - {class_of(path, split) for path in relative}:
            self.remarks.add("left out, classes without an image", os.path.join(top, name))
        return relative

    def _walk(self, top: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Give each folder and its files, through links, but not through those that lead back."""
        # Two classes may be links to one folder; a circle is a folder inside itself.
        ways = {top: {os.path.realpath(top)}}
        for place, folders, files in os.walk(top, followlinks=True, onerror=self._refuse):
            way = ways.pop(place)
            reals = {name: os.path.realpath(os.path.join(place, name)) for name in folders}
            hidden = {name for name in (*folders, *files) if name.startswith(".")}
            for name in hidden:
                if name in folders or is_image(name):
                    self.remarks.add("left out, hidden", os.path.join(place, name))
            folders[:] = [name for name in folders if name not in hidden and reals[name] not in way]
            ways |= {os.path.join(place, name): way | {reals[name]} for name in folders}
            yield place, folders, [name for name in files if name not in hidden]

    def _refuse(self, error: OSError) -> None:
        if not self.skip_damaged:
            raise ValueError(
                f"{error.filename} cannot be listed: {error.strerror}. Make it readable, move it "
                "away, or leave it out by --skip-damaged."
            ) from error
        self.remarks.add(f"left out, cannot be listed ({error.strerror})", error.filename)

    def _is_file(self, path: str) -> bool:
        """Tell whether it can be opened: a pipe never ends."""
        if os.path.isfile(path):
            return True
        what = "no file" if os.path.exists(path) else "a link that leads nowhere"
        if not self.skip_damaged:
            raise ValueError(f"{path} is {what}. Move it away, or leave it out by --skip-damaged.")
        self.remarks.add(f"left out, {what}", path)
        return False

    def _note_files(self, place: str, files: Sequence[str]) -> None:
        """Remark files in no folder of a class."""
        paths = [os.path.join(place, name) for name in files]
        for path in filter(is_image, paths):
            self.remarks.add("left out, in no folder of a class", path)
        self._note_others(path for path in paths if not is_image(path))

    def _note_others(self, paths: Iterable[str]) -> None:
        for path in paths:
            is_there = os.path.exists(path)
            why = "not named like an image" if is_there else "a link that leads nowhere"
            self.remarks.add(f"left out, {why}", path)


def is_image(name: str) -> bool:
    """Tell whether a file has the name of an image.

    Parameters
    ----------
    name : str
        Its name or path.

    Returns
    -------
    bool
    """
    return name.lower().endswith(SUFFIXES)


def class_of(path: str, split: str) -> str:
    """Tell the class of an image.

    Parameters
    ----------
    path : str
        Its path in the folder.
    split : str
        Its split, ``''`` if there is none.

    Returns
    -------
    str
    """
    return os.path.relpath(path, split or os.curdir).split(os.sep)[0]
