"""The sound of YouTube videos."""

from typing import Any

from fuel_data.datasets.converted import ConvertedDataset
from fuel_data.downloaders.youtube_audio import audio_name


class YouTubeAudio(ConvertedDataset):
    """The sound of one video, as one example of the split `train`.

    `features` are int16 of shape (batch 1, time, channel). The sound belongs to whoever made the
    video.

    Parameters
    ----------
    youtube_id : str
        What YouTube calls the video; the file is ``ID.hdf5``.
    **kwargs
        Further arguments of `ConvertedDataset`, but for `which_sets`.
    """

    def __init__(self, youtube_id: str, **kwargs: Any) -> None:
        audio_name(youtube_id)
        self.filename = f"{youtube_id}.hdf5"
        self.converter = f"youtube_audio --youtube-id {youtube_id}"
        super().__init__(("train",), **kwargs)
