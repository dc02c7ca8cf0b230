import numpy as np

from nongauss.auto.candidates import Candidate
from nongauss.auto.search import Contender, _of_other_families, _within_reach


def contender(name, family, mean):
    """A contender of a family, and its trial with log densities about `mean`."""
    candidate = Candidate(name, frozenset(["real"]), None, None, None, family=family)
    density = mean + 0.01 * np.sin(np.arange(100.0))
    return Contender(name, candidate), Contender(name, candidate, log_density=density)


def screened(*made):
    rivals = [own for own, _ in made]
    trials = {own.name: trial for own, trial in made}
    weight = np.ones(100)
    chosen = _within_reach(rivals, trials, weight, 2)
    return chosen, chosen + _of_other_families(chosen, rivals, trials, weight)


def test_the_best_of_another_family_is_kept_where_it_is_not_far_behind():
    chosen, whole = screened(
        contender("a", "one", 0.0),
        contender("b", "one", -0.05),
        contender("c", "two", -0.5),
        contender("d", "two", -0.4),
        contender("e", "three", -0.7),
    )
    assert [c.name for c in chosen] == ["a", "b"]
    assert [c.name for c in whole] == ["a", "b", "d"]
    assert not whole[-1].why_out


def test_a_family_that_is_among_the_chosen_gets_no_more():
    chosen, whole = screened(
        contender("a", "one", 0.0), contender("b", "two", -0.01), contender("c", "two", -0.3)
    )
    assert [c.name for c in whole] == [c.name for c in chosen] == ["a", "b"]
