"""Adult, UCI's table of census records, as an HDF5 file of numbers.

What is a word in the table becomes one column for each word that it can be, with a 1 in that of the
record. The words and their order are fixed here, so the columns are the same in every process, in
both splits, and for a part of the table.
"""

import argparse
import json
import os
from collections.abc import Callable

import numpy

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.inputs import (
    add_any_version_argument,
    check_count,
    check_digests,
    find_inputs,
    read_rows,
)
from fuel_data.utils.names import nearest_name

FILES = {"train": "adult.data", "test": "adult.test"}
DIGESTS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
#: Records in which nothing is unknown.
SPLITS = {"train": 30162, "test": 15060}
COLUMNS_ATTRIBUTE = "columns"

# Fields of a record, in the order of the table: None for a number, otherwise what it can be. Never
# having worked is left out: such a record has no occupation, so it is not complete.
FIELDS: dict[str, str | None] = {
    "age": None,
    "workclass": (
        "Federal-gov Local-gov Private Self-emp-inc Self-emp-not-inc State-gov Without-pay"
    ),
    "fnlwgt": None,
    "education": (
        "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate "
        "HS-grad Masters Preschool Prof-school Some-college"
    ),
    "education-num": None,
    "marital-status": (
        "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married "
        "Separated Widowed"
    ),
    "occupation": (
        "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
        "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales "
        "Tech-support Transport-moving"
    ),
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "capital-gain": None,
    "capital-loss": None,
    "hours-per-week": None,
    "native-country": (
        "Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France "
        "Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran "
        "Ireland Italy Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru "
        "Philippines Poland Portugal Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago "
        "United-States Vietnam Yugoslavia"
    ),
}
INCOMES = {"<=50K": False, ">50K": True}


def convert_adult(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    output_filename: str = "adult.hdf5",
    any_version: bool = False,
) -> tuple[str]:
    """Convert the two tables, without the records in which something is unknown.

    The file has the sources `features`, float64 of shape (45222, 104), with the axes batch, index,
    and `targets`, bool of shape (45222, 1), whether somebody earns over 50,000 dollars a year, with
    the axes batch, index; and the splits `train` of 30,162 and `test` of 15,060 records. The names
    of the columns are in the attribute ``columns`` of `features`, as JSON.

    Parameters
    ----------
    directory : path
        Folder of the files, or one of them.
    output_directory : path
        Folder to write into.
    output_filename : str, optional
        Name of the file.
    any_version : bool, optional
        Whether to take files with other digests and other numbers of records.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If files are missing.
    ValueError
        If one of them is damaged, or not the expected one.
    """
    paths = find_inputs(directory, FILES.values())
    check_digests(paths, DIGESTS, any_version)
    data = []
    for (split, expected), path in zip(SPLITS.items(), paths, strict=True):
        features, targets = _read(path)
        check_count(path, "complete records", len(features), expected, any_version)
        data += [(split, "features", features), (split, "targets", targets)]
    output = os.path.join(output_directory, output_filename)
    with new_hdf5_file(output) as h5file:
        fill_hdf5_file(h5file, data, dict.fromkeys(("features", "targets"), ("batch", "index")))
        h5file["features"].attrs[COLUMNS_ATTRIBUTE] = json.dumps(column_names())
        record_inputs(h5file, paths)
    return (output,)


def column_names() -> list[str]:
    """Name the columns of `features`.

    Returns
    -------
    list of str
        A number is called by its field, a word by ``'field=word'``.

    Examples
    --------
    >>> column_names()[:3]
    ['age', 'workclass=Federal-gov', 'workclass=Local-gov']
    """
    return [
        field if words is None else f"{field}={word}"
        for field, words in FIELDS.items()
        for word in (words or "number").split()
    ]


def _read(path: str) -> tuple[numpy.ndarray, numpy.ndarray]:
    columns = {name: index for index, name in enumerate(column_names())}
    features, targets = [], []
    for line, row in read_rows(path, skipinitialspace=True):
        # The first line of the test table says what it is.
        if not row or row[0].startswith("|") or "?" in row:
            continue
        try:
            target, values = _read_record(row, columns)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
        features.append(values)
        targets.append([target])
    shape = (-1, len(columns))
    return numpy.array(features, "float64").reshape(shape), numpy.array(targets, bool)


def _read_record(row: list[str], columns: dict[str, int]) -> tuple[bool, numpy.ndarray]:
    if len(row) != len(FIELDS) + 1:
        raise ValueError(f"expected {len(FIELDS) + 1} fields, got {len(row)}: {','.join(row)!r}.")
    values = numpy.zeros(len(columns))
    for (field, words), text in zip(FIELDS.items(), row, strict=False):
        if words is None:
            try:
                values[columns[field]] = float(text)
            except ValueError as error:
                raise ValueError(f"{field} must be a number; got {text!r}.") from error
        elif text not in words.split():
            raise ValueError(f"{field} cannot be {text!r}.{nearest_name(text, words.split())}")
        else:
            values[columns[f"{field}={text}"]] = 1
    # In the test table a full stop follows.
    income = row[-1].removesuffix(".")
    if income not in INCOMES:
        raise ValueError(f"the income must be {' or '.join(INCOMES)}; got {row[-1]!r}.")
    return INCOMES[income], values


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_adult`.
    """
    add_any_version_argument(subparser)
    return convert_adult
