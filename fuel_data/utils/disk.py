"""Room on disks, and which of them are of this machine."""

import os
import shutil

MAX_DISK_USAGE = 0.9
_REMOTE = {"9p", "afs", "beegfs", "ceph", "cifs", "fuse", "gfs2", "glusterfs", "gpfs", "lustre"}
_REMOTE |= {"nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb3", "smbfs", "virtiofs"}


def disk_usage(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Say how large the disk of a folder is, and how full.

    Parameters
    ----------
    path : path
        A file or folder on it.

    Returns
    -------
    total, used : int
        In bytes, as ``df`` counts: what is kept for the administrator is no part of the total.
    """
    usage = shutil.disk_usage(path)
    return usage.used + usage.free, usage.used


def safe_mkdir(folder_name: str | os.PathLike[str], force_perm: int | None = None) -> None:
    """Make a folder and those above it, if they are not there.

    Parameters
    ----------
    folder_name : path
        The folder, absolute or not.
    force_perm : int, optional
        Permissions of every folder that is made, whatever the umask says.
    """
    folder = os.path.abspath(folder_name)
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        os.makedirs(folder, exist_ok=True)
        if force_perm is not None:
            os.chmod(folder, force_perm)


def check_enough_space(
    dataset_local_dir: str | os.PathLike[str],
    remote_fname: str | os.PathLike[str],
    local_fname: str | os.PathLike[str],
    max_disk_usage: float = MAX_DISK_USAGE,
) -> bool:
    """Tell whether a file may be copied without filling a disk.

    Parameters
    ----------
    dataset_local_dir : path
        A folder on the disk.
    remote_fname : path
        The file to copy.
    local_fname : path
        The file that it would take the place of, after it has been copied; it need not exist, and
        it makes no room, since both are there for a moment.
    max_disk_usage : float, optional
        The part of the disk that may be used.

    Returns
    -------
    bool
    """
    del local_fname
    return has_room(dataset_local_dir, os.path.getsize(remote_fname), max_disk_usage)


def has_room(
    folder: str | os.PathLike[str], num_bytes: int, max_disk_usage: float = MAX_DISK_USAGE
) -> bool:
    """Tell whether a disk can take so many bytes more.

    Parameters
    ----------
    folder : path
        A folder on the disk.
    num_bytes : int
        How many.
    max_disk_usage : float, optional
        The part of the disk that may be used.

    Returns
    -------
    bool
    """
    total, used = disk_usage(folder)
    return used + num_bytes <= max_disk_usage * total


def is_local(descriptor: int) -> bool:
    """Tell whether an open file is on a disk of this machine.

    Parameters
    ----------
    descriptor : int
        Of the open file.

    Returns
    -------
    bool
        False for network and user-space file systems; True if that cannot be told.
    """
    device = os.fstat(descriptor).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:
        return True
    # After a lone dash comes the kind of file system.
    kinds = [fields[fields.index("-") + 1] for fields in lines if fields[2] == wanted]
    return not any(kind.partition(".")[0] in _REMOTE for kind in kinds)
