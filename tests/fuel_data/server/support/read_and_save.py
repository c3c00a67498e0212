"""A trainer: reads a served stream, and saves its iterator and what it has read after each batch.

Arguments: file of the checkpoint, number of epochs, recipe, its arguments as JSON. Prints the id of
its server and the number of batches after each.
"""

import hashlib
import json
import pickle
import sys
from pathlib import Path

from fuel_data.server import serve
from fuel_data.utils.files import atomic_write


def digest(item):
    return hashlib.sha256(b"".join(array.tobytes() for array in item)).hexdigest()


def main(path, num_epochs, recipe, arguments):
    if Path(path).exists():
        digests, iterator = pickle.loads(Path(path).read_bytes())
    else:
        digests, iterator = [], serve(recipe, **json.loads(arguments)).get_epoch_iterator()
    stream = iterator.data_stream
    while True:
        for item in iterator:
            digests.append(digest(item))
            with atomic_write(path) as file:
                pickle.dump((digests, iterator), file)
            print(stream._access.process.pid, len(digests), flush=True)
        if iterator.epoch + 1 == int(num_epochs):
            break
        iterator = stream.get_epoch_iterator()


if __name__ == "__main__":
    main(*sys.argv[1:])
