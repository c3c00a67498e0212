"""Settings, looked up when they are read.

A setting has the first of these values that exists:

1. what was assigned in code, ``config.floatX = 'float64'`` (``del config.floatX`` takes it back);
2. its environment variable;
3. its line in the YAML file;
4. its default.

A setting with none of them raises `ConfigurationError` when it is read, so ``hasattr`` works.
Nothing is frozen at import: the environment and the file are looked at on every read.

The settings of `fuel_data` are in `config`; the file is ``~/.fuelrc``, or what the environment
variable ``FUEL_CONFIG`` says:

=================  =====================  ==========================================================
key                environment            meaning and default
=================  =====================  ==========================================================
data_path          FUEL_DATA_PATH         folders in which data sets are looked for, separated as
                                          ``PATH`` is; a folder under the user's data directory
local_data_path    FUEL_LOCAL_DATA_PATH   folder on a disk of this machine for copies of HDF5 files
                                          on slow storage, see `fuel_data.utils.cache`; none
max_disk_usage     FUEL_MAX_DISK_USAGE    the part of that disk that may be full after a file has
                                          been copied, above 0, at most 1; 0.9
default_seed       FUEL_DEFAULT_SEED      seed of what is random and was given none; 1
floatX             FUEL_FLOATX            dtype of floating point data; float32
extra_converters   FUEL_EXTRA_CONVERTERS  modules or files (NAME.py) with further converters,
                                          separated by spaces; none
extra_downloaders  FUEL_EXTRA_DOWNLOADERS the same with further downloaders; none
=================  =====================  ==========================================================

`floatX` is float32 because that is what the graphs compute in: a float64 batch would be twice the
bytes on every way and be narrowed at the end.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fuel_data.exceptions import ConfigurationError
from fuel_data.utils.names import nearest_name

_UNSET = object()


class _Setting(NamedTuple):
    type_: Callable[[Any], Any]
    default: Any
    env_var: str | None


class Configuration:
    """A set of named settings.

    Parameters
    ----------
    env_var : str or sequence of str, optional
        The environment variable that says where the YAML file is, which then must exist. Of
        several, the first that is set.
    path : path, optional
        Where the YAML file is if the environment does not say. It need not exist.
    """

    def __init__(
        self,
        env_var: str | Sequence[str] = (),
        path: str | os.PathLike[str] | None = None,
    ):
        self.__dict__["_settings"] = {}
        self.__dict__["_assigned"] = {}
        self.__dict__["_env_vars"] = (env_var,) if isinstance(env_var, str) else tuple(env_var)
        self.__dict__["_path"] = path
        self.__dict__["_file_seen"] = (None, {})

    def add_config(
        self,
        key: str,
        type_: Callable[[Any], Any],
        default: Any = _UNSET,
        env_var: str | None = None,
    ) -> None:
        """Add a setting.

        Parameters
        ----------
        key : str
            Its name, an identifier.
        type_ : function
            Makes the value from what was assigned, read or given as default, for example `int`,
            `str`, `boolean`, `words`. It is applied on every read.
        default : object, optional
            The default, or a function without arguments that gives it when it is needed. A setting
            without default must be set before it is read.
        env_var : str, optional
            The environment variable that sets it.
        """
        self._settings[key] = _Setting(boolean if type_ is bool else type_, default, env_var)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        setting = self._setting(key)
        value, origin = self._raw_value(key, setting)
        try:
            return setting.type_(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"config: `{key}` cannot be {value!r}, which {origin} says: {error}"
            ) from error

    def __setattr__(self, key: str, value: Any) -> None:
        self._setting(key)
        self._assigned[key] = value

    def __delattr__(self, key: str) -> None:
        self._setting(key)
        self._assigned.pop(key, None)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._settings])

    def __repr__(self) -> str:
        return f"<Configuration with {', '.join(self._settings) or 'no settings'}>"

    def _setting(self, key: str) -> _Setting:
        try:
            return self._settings[key]
        except KeyError:
            raise AttributeError(
                f"config: there is no setting `{key}`.{nearest_name(key, self._settings)}"
            ) from None

    def _raw_value(self, key: str, setting: _Setting) -> tuple[Any, str]:
        if key in self._assigned:
            return self._assigned[key], "the program"
        if setting.env_var is not None and setting.env_var in os.environ:
            return os.environ[setting.env_var], f"the environment variable {setting.env_var}"
        path = self._file_path()
        from_file = self._read_file(path)
        # A line without a value is one that was left to be filled in.
        if from_file.get(key) is not None:
            return from_file[key], f"the file {path}"
        if setting.default is _UNSET:
            ways = [f"Assign config.{key}"]
            if setting.env_var is not None:
                ways.append(f"set the environment variable {setting.env_var}")
            if path is not None:
                ways.append(f"write it into {path}")
            raise ConfigurationError(f"config: `{key}` is not set. {', or '.join(ways)}.")
        default = setting.default
        return (default() if callable(default) else default), "the default"

    def _naming_variable(self) -> str | None:
        return next((name for name in self._env_vars if os.environ.get(name)), None)

    def _default_path(self) -> str | os.PathLike[str] | None:
        return self._path

    def _file_path(self) -> Path | None:
        variable = self._naming_variable()
        path = self._default_path() if variable is None else os.environ[variable]
        return None if path is None else Path(path).expanduser()

    def _read_file(self, path: Path | None) -> dict[str, Any]:
        if path is None:
            return {}
        variable = self._naming_variable()
        try:
            stat = path.stat()
        except FileNotFoundError:
            if variable is None:
                return {}
            raise ValueError(
                f"config: the environment variable {variable} names {path}, where there is no "
                "file. Correct it, or unset it."
            ) from None
        version = (str(path), stat.st_mtime_ns, stat.st_size)
        if self._file_seen[0] != version:
            self.__dict__["_file_seen"] = (version, _load_yaml(path))
        content = self._file_seen[1]
        for key in content:
            if key not in self._settings:
                raise ValueError(
                    f"config: {path} sets `{key}`, which is no setting."
                    f"{nearest_name(str(key), self._settings)}"
                )
        return content


def _load_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"config: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"config: {path} is no text in UTF-8: {error}.") from error
    except yaml.YAMLError as error:
        raise ValueError(f"config: {path} is not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ValueError(
            f"config: {path} must hold lines `key: value`; got {type(content).__name__}."
        )
    return content


def boolean(value: Any) -> bool:
    """Make a bool from a bool, or from the words yes, no, true, false, on, off, 1, 0.

    Parameters
    ----------
    value : bool, int or str
        What was set. An empty text is False.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If it is another word.
    """
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise ValueError(f"expected true or false, got {value!r}")


def words(value: Any) -> list[str]:
    """Make a list of words from a text, separated by white space, or from a list.

    Parameters
    ----------
    value : str or sequence of str
        What was set. An empty text has no words.

    Returns
    -------
    list of str
    """
    return value.split() if isinstance(value, str) else [str(word) for word in value]


def folders(value: Any) -> list[str]:
    """Make a list of folders from a text, separated as in ``PATH``, or from a list.

    Parameters
    ----------
    value : str, path or sequence of them
        What was set. Empty entries are left out.

    Returns
    -------
    list of str
    """
    if isinstance(value, os.PathLike):
        return [os.fspath(value)]
    if isinstance(value, str):
        return [folder for folder in value.split(os.pathsep) if folder]
    return [os.fspath(folder) for folder in value]


def whole(value: Any) -> int:
    """Make an int from a whole number, or from a text such as ``12``.

    Parameters
    ----------
    value : int or str
        What was set.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If it is another number, or none.
    """
    number = int(value)
    if not isinstance(value, str) and number != value:
        raise ValueError("expected a whole number")
    return number


def fraction(value: Any) -> float:
    """Make a number above 0 and at most 1 from a number, or from a text such as ``0.9``.

    Parameters
    ----------
    value : float or str
        What was set.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is another number, or none.
    """
    number = float(value)
    if not 0 < number <= 1:
        raise ValueError("expected a number above 0 and at most 1")
    return number


def user_data_folder(application: str) -> str:
    """Say where the data of a program belong in the user's home on this system.

    Parameters
    ----------
    application : str
        Name of the program's folder.

    Returns
    -------
    str
        An absolute path. The folder need not exist.
    """
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return str(base / application)


def _default_data_path() -> list[str]:
    return [user_data_folder("fuel")]


config = Configuration(env_var="FUEL_CONFIG", path="~/.fuelrc")
config.add_config("data_path", folders, default=_default_data_path, env_var="FUEL_DATA_PATH")
config.add_config("local_data_path", str, default="", env_var="FUEL_LOCAL_DATA_PATH")
config.add_config("max_disk_usage", fraction, default=0.9, env_var="FUEL_MAX_DISK_USAGE")
config.add_config("default_seed", whole, default=1, env_var="FUEL_DEFAULT_SEED")
config.add_config("extra_converters", words, default="", env_var="FUEL_EXTRA_CONVERTERS")
config.add_config("extra_downloaders", words, default="", env_var="FUEL_EXTRA_DOWNLOADERS")
config.add_config("floatX", str, default="float32", env_var="FUEL_FLOATX")
