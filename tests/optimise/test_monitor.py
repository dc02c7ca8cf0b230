from nongauss.optimise.monitor import Watch
from nongauss.optimise.result import Status


def test_a_row_of_the_trace_and_a_word_to_everyone():
    heard = []
    watch = Watch(5, [lambda p: heard.append(p) or True, heard.append], 0)
    assert watch.record(-2, {"loss": 3})
    assert [row | {"seconds": 0.0} for row in watch.trace] == [
        {"iteration": 1, "bound": -2.0, "seconds": 0.0, "loss": 3.0}
    ]
    assert len(heard) == 2
    assert (heard[0].iteration, heard[0].max_iter, heard[0].bound, heard[0].info) == (
        1,
        5,
        -2.0,
        {"loss": 3.0},
    )


def test_it_goes_on_from_a_former_run():
    first = Watch(5, [], 0)
    assert not first.record(1.0)
    former = first.result("state", Status.MAX_ITER)
    progress = []
    second = Watch(5, [progress.append], 0, former)
    second.record(2.0)
    result = second.result("later", Status.CONVERGED)
    assert [row["iteration"] for row in result.trace] == [1, 2]
    assert result.trace[1]["seconds"] >= result.trace[0]["seconds"]
    assert (result.state, result.n_iter, progress[0].max_iter, len(former.trace)) == ("later", 2, 6, 1)


def test_verbose_says_how_it_ended(capsys):
    watch = Watch(1, [], 1)
    watch.record(0.0)
    watch.result(None, Status.MAX_ITER)
    assert capsys.readouterr().out == f"iteration 1: {Status.MAX_ITER.value}\n"
