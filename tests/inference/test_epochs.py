import numpy as np
import pytest

from nongauss.core.contracts import Status
from nongauss.inference.epochs import run_epochs


class Counter:
    """A state that counts epochs."""

    def __init__(self, bounds):
        self.bounds, self.value = bounds, 0

    def epoch(self, number):
        self.value += 1
        return dict(self.bounds[number])

    def snapshot(self):
        return self.value


def bounds(n, **last):
    return [{"bound": float(i), "other": 2.0 * i} for i in range(n - 1)] + [{"bound": float(n - 1), **last}]


def test_a_whole_schedule_is_completed_and_can_go_on():
    first = run_epochs(Counter(bounds(3)).epoch, Counter([]).snapshot, 3)
    assert first.status is Status.COMPLETED
    again = run_epochs(Counter(bounds(2)).epoch, Counter([]).snapshot, 2, former=first)
    assert again.n_iter == 5
    assert [row["iteration"] for row in again.trace] == [1, 2, 3, 4, 5]
    assert first.trace[1]["other"] == 2.0


def test_an_epoch_that_is_not_finite_is_not_kept():
    counter = Counter(bounds(3, other=np.nan))
    result = run_epochs(counter.epoch, counter.snapshot, 5)
    assert result.status is Status.NONFINITE
    assert (result.state, result.n_iter) == (2, 2)


def test_it_stops_when_the_model_or_a_callback_says_so(capsys):
    counter = Counter(bounds(3, stop=1.0))
    assert run_epochs(counter.epoch, counter.snapshot, 9, verbose=1).status is Status.CONVERGED
    assert "Converged" in capsys.readouterr().out
    counter = Counter(bounds(9))
    result = run_epochs(counter.epoch, counter.snapshot, 9, callbacks=[lambda p: p.iteration == 4])
    assert (result.status, result.state) == (Status.STOPPED, 4)


@pytest.mark.parametrize("at", [0, 2])
def test_an_interrupt_keeps_what_is_done(at):
    counter = Counter(bounds(9))

    def epoch(number):
        if number == at:
            raise KeyboardInterrupt
        return counter.epoch(number)

    if at == 0:
        with pytest.raises(KeyboardInterrupt):
            run_epochs(epoch, counter.snapshot, 5)
    else:
        result = run_epochs(epoch, counter.snapshot, 5)
        assert (result.status, result.state) == (Status.STOPPED, 2)
