from __future__ import annotations

import pandas as pd
import pytest
from sklearn import config_context
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError

import nongauss
from nongauss.estimator.about import About
from nongauss.estimator.told import Leaderboard, documentation_of
from nongauss.optimise import course


@pytest.fixture(scope="module")
def fitted():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = nongauss.SparseGPRegressor(n_inducing=5, max_iter=100, tol=0.1, random_state=0)
    return model.fit(X[:60], y[:60]), X[:60]


def test_summary_says_what_the_fit_says(fitted):
    model, _ = fitted
    text = model.summary()
    assert text.splitlines()[0].split() == ["Model", "SparseGPRegressor"]
    assert model.stop_reason_ in text
    assert f"Iterations           {model.n_iter_}" in text
    assert "Verdict" not in text
    with pytest.raises(NotFittedError):
        nongauss.SparseGPRegressor().summary()


def test_a_notebook_shows_the_box_what_was_learned_and_the_verdict(fitted):
    model, _ = fitted
    before = nongauss.SparseGPRegressor()._repr_html_()
    assert "nongauss-told" not in before
    try:
        model.about_ = About(
            target="y<1>", n_rows=60, verdict=["Better <than> the mean."], figures={"gp": {"rmse": 1.25}}
        )
        page = model._repr_html_()
        assert "nongauss-told" in model._repr_mimebundle_()["text/html"]
        box, block = page.split('<div class="nongauss-told"')
        assert "sk-" in box
        assert "<b>Better &lt;than&gt; the mean.</b>" in block
        assert "Target: <b>y&lt;1&gt;</b>" in block
        assert "Rows: <b>60</b>" in block
        assert "RMSE" in block
        assert "1.25" in block
        assert model.summary().endswith("Verdict\n  Better <than> the mean.")
    finally:
        del model.about_
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_a_law_shows_its_first_rows(fitted):
    model, X = fitted
    law = model.predict_distribution(X)
    page = law._repr_html_()
    assert page.count("<tr") == 11
    assert "predictions of 60 rows, the first 10" in page
    for value in (law.mean[3], law.std[3], *law[3].quantile([0.05, 0.5, 0.95])[0]):
        assert f"<td>{value:.4g}</td>" in page
    assert "first" not in law[:3]._repr_html_().split("<p>")[1]


def test_a_leaderboard_shows_three_digits_and_blanks():
    board = Leaderboard({"candidate": ["a", "b"], "log_density": [-1.23456, float("nan")]})
    page = board._repr_html_()
    assert "<td>-1.235</td>" in page
    assert "NaN" not in page
    assert type(board.iloc[:1]) is pd.DataFrame
    assert "and 5 more" in Leaderboard({"candidate": [str(i) for i in range(30)]})._repr_html_()


def test_documentation_is_where_the_package_says(monkeypatch):
    class Known:
        def get_all(self, name):
            return ["Source, https://example.org/code", "Documentation, https://example.org/docs/"]

    monkeypatch.setattr("nongauss.estimator.told.metadata", lambda name: Known())
    assert documentation_of("TGGMRegressor") == "https://example.org/docs/reference/#nongauss.TGGMRegressor"
    assert nongauss.TGGMRegressor()._get_doc_link().startswith("https://example.org/docs/")


def test_progress_in_a_notebook_is_one_line(monkeypatch, capsys):
    progress = [course.Progress(i, 10, -100.0 / i, 0.5) for i in (1, 2)]
    for word in progress:
        course.say(word)
    assert capsys.readouterr().out.count("\n") == 2
    monkeypatch.setattr(course, "in_notebook", lambda: True)
    for word in progress:
        course.say(word)
    course.say("done")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    lines = out.rstrip("\n").split("\r")[1:]
    assert [line.rstrip() for line in lines] == [str(progress[0]), str(progress[1]), "done"]
    assert len(lines[2]) >= len(str(progress[1]))  # nothing of the longer line is left


def test_a_kernel_is_told_from_a_terminal(monkeypatch):
    class Shell:
        kernel = object()

    class IPython:
        get_ipython = staticmethod(lambda: None)

    monkeypatch.setitem(course.sys.modules, "IPython", IPython)
    assert not course.in_notebook()
    monkeypatch.setattr(IPython, "get_ipython", staticmethod(Shell))
    assert course.in_notebook()
