"""A KeyboardInterrupt that comes at the worst place: a batch is drawn and not yet noted."""

import pytest

from bricks.main_loop import MainLoop
from extensions import FinishAfter, TrainingExtension


class Numbers:
    """Epochs of three numbers; the iterator is interrupted once, when it has given a batch."""

    def __init__(self, interrupt_at):
        self.interrupt_at = interrupt_at

    def get_epoch_iterator(self, as_dict, epoch):
        return NumbersIterator(self, epoch)


class NumbersIterator:
    def __init__(self, stream, epoch):
        self.stream = stream
        self.epoch = epoch
        self.index = 0

    def __next__(self):
        if self.index == 3:
            raise StopIteration
        self.index += 1
        number = 10 * self.epoch + self.index
        if number == self.stream.interrupt_at:
            self.stream.interrupt_at = None
            raise KeyboardInterrupt
        return {"x": number}


class Memory:
    def __init__(self):
        self.seen = []

    def initialize(self):
        pass

    def process_batch(self, batch):
        self.seen.append(batch["x"])


class Looks(TrainingExtension):
    def on_error(self, exception):
        self.in_flight = self.main_loop.batch_in_flight


@pytest.mark.parametrize("interrupt_at", [1, 2, 3, 11, 13])
def test_no_batch_is_lost_when_training_goes_on(interrupt_at):
    memory, looks = Memory(), Looks()
    extensions = [FinishAfter(after_n_epochs=2), looks]
    loop = MainLoop(memory, Numbers(interrupt_at), extensions=extensions)
    with pytest.raises(KeyboardInterrupt):
        loop.run()
    # So that no checkpoint is made, whose position would be one batch too far.
    assert looks.in_flight
    loop.run()

    assert memory.seen == [1, 2, 3, 11, 12, 13]
    assert not loop.batch_in_flight
