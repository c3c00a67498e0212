"""The sound of a YouTube video, decoded by ffmpeg, as an HDF5 file."""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable

import numpy

from fuel_data.converters.base import fill_hdf5_file, new_hdf5_file, record_inputs
from fuel_data.converters.inputs import find_inputs
from fuel_data.downloaders.youtube_audio import audio_name
from fuel_data.utils.progress import progress_bar

RATE_ATTRIBUTE = "sample_rate"


def convert_youtube_audio(
    directory: str | os.PathLike[str],
    output_directory: str | os.PathLike[str],
    youtube_id: str,
    channels: int = 1,
    sample: int = 16000,
    output_filename: str | None = None,
) -> tuple[str]:
    """Convert the sound of a video, the file ``ID.m4a``.

    The file has the source `features`, int16 of shape (1, time, channel), with the axes batch,
    time, feature: the one example of the split `train`. Its attribute ``sample_rate`` is the number
    of samples in a second.

    Parameters
    ----------
    directory : path
        Folder of the file.
    output_directory : path
        Folder to write into.
    youtube_id : str
        What YouTube calls the video.
    channels : int, optional
        Number of channels, to which those of the file are mixed.
    sample : int, optional
        Samples in a second.
    output_filename : str, optional
        Name of the file, by default ``ID.hdf5``.

    Returns
    -------
    tuple of str
        Path of the file.

    Raises
    ------
    MissingInputFiles
        If the file is missing.
    ValueError
        If ffmpeg cannot read it, or an argument is out of range.
    OSError
        If ffmpeg is not there.
    """
    if channels < 1 or sample < 1:
        raise ValueError(f"--channels and --sample must be positive; got {channels}, {sample}.")
    (path,) = find_inputs(directory, [audio_name(youtube_id)])
    output = os.path.join(output_directory, output_filename or f"{youtube_id}.hdf5")
    # Beside the output, since hours of sound need not fit into memory.
    with tempfile.TemporaryFile(dir=output_directory) as samples:
        _decode(path, samples, channels, sample)
        if os.fstat(samples.fileno()).st_size == 0:
            raise ValueError(f"{path}: there is no sound in it.")
        sound = numpy.memmap(samples, "<i2", "r").reshape(1, -1, channels)
        with (
            new_hdf5_file(output) as h5file,
            progress_bar(os.path.basename(output), sound.nbytes) as progress,
        ):
            labels = {"features": ("batch", "time", "feature")}
            fill_hdf5_file(h5file, [("train", "features", sound)], labels, progress)
            h5file["features"].attrs[RATE_ATTRIBUTE] = sample
            record_inputs(h5file, [path])
    return (output,)


def _decode(path: str, samples: object, channels: int, sample: int) -> None:
    if shutil.which("ffmpeg") is None:
        raise OSError(
            "youtube_audio: the program ffmpeg decodes the sound, and it is not on the PATH. "
            "Install it, as by `apt install ffmpeg` or from https://ffmpeg.org."
        )
    # A file may name others to be read with it: only what is in a file, none from the network.
    command = ["ffmpeg", "-v", "error", "-nostdin", "-protocol_whitelist", "file,pipe"]
    command += ["-i", f"file:{path}", "-map", "0:a:0", "-f", "s16le", "-acodec", "pcm_s16le"]
    command += ["-ac", str(channels), "-ar", str(sample), "pipe:1"]
    done = subprocess.run(command, stdout=samples, stderr=subprocess.PIPE)  # type: ignore
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ValueError(f"{path} cannot be decoded by ffmpeg: {said or done.returncode}")


def fill_subparser(subparser: argparse.ArgumentParser) -> Callable:
    """Describe the converter to `fuel-convert`.

    Parameters
    ----------
    subparser : argparse.ArgumentParser
        Parser of its arguments.

    Returns
    -------
    function
        `convert_youtube_audio`.
    """
    subparser.add_argument("--youtube-id", required=True, help="what YouTube calls the video")
    text = "number of channels, by default 1"
    subparser.add_argument("--channels", type=int, default=1, help=text)
    text = "samples in a second, by default 16000"
    subparser.add_argument("--sample", type=int, default=16000, help=text)
    return convert_youtube_audio
