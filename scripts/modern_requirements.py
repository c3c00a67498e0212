"""Print the modern stack's requirements: firebrick's and Aesara's, without Aesara's bounds."""

import re
import sys
from importlib import metadata

# The first numpy that Aesara's bounds forbid, and the first jaxlib after those that compute wrong
# training steps on the CPU.
MODERN = {"numpy": "numpy>=2", "scipy": "scipy", "jax": "jax>=0.8.3"}


def modern_requirements(extras: list[str]) -> list[str]:
    """Give the requirements of both distributions, which must be installed already.

    Parameters
    ----------
    extras : list of str
        Names of firebrick's extras.

    Returns
    -------
    list of str
        Lines for ``pip install --requirement``.
    """
    lines = [*(metadata.requires("aesara") or []), *(metadata.requires("firebrick") or [])]
    found = set()
    for line in lines:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        extra = re.search(r"extra == ['\"](.+?)['\"]", marker)
        if extra and extra.group(1) not in extras:
            continue
        name = re.match(r"[\w.-]+", requirement).group().lower().replace("_", "-")
        if name not in ("aesara", "firebrick"):
            found.add(MODERN.get(name, requirement))
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(modern_requirements(sys.argv[1:])))
