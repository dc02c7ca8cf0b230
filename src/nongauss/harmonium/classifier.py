"""`HarmoniumClassifier`, what a user calls for features that tell classes apart."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin

from nongauss.estimator.parameters import Interval, StrOptions
from nongauss.harmonium import summaries as readable
from nongauss.harmonium.chain_graph import ACTIVE, Chain
from nongauss.harmonium.columns import Coder
from nongauss.harmonium.common import CONSTRAINTS, FloatArray, HarmoniumBase, Reading
from nongauss.harmonium.contrastive_divergence import Recipe, dropout_share
from nongauss.harmonium.fit import QUICK, find_features
from nongauss.harmonium.impute import NO_FILLER, learn_filler
from nongauss.harmonium.objective import scores
from nongauss.harmonium.params import Rows
from nongauss.harmonium.predict import Machine
from nongauss.harmonium.updates import dropped
from nongauss.optimise.checkpoint import Checkpoint, ended
from nongauss.optimise.result import Status
from nongauss.tables.labels import LabelCoder
from nongauss.tables.parted import by_parts, is_parted

WIDEST = 4.0
"""Log temperatures are sought within this of 0."""


class HarmoniumClassifier(ClassifierMixin, HarmoniumBase):
    r"""Classification by latent features that are learned with a large margin between classes.

    A harmonium (see `Harmonium`) whose feature means E[z | x] feed a multiclass linear classifier; both are
    learned together: contrastive divergence of the columns plus C times the Crammer-Singer loss
    max_y [margin 1(y != y_d) + f_y - f_{y_d}] of each row. With several views a step hides one of them in
    half of its rows; cells that are missing are taken for what the others let expect (see `gaps.py`).

    Parameters
    ----------
    n_components : "infinite" or int, default "infinite"
        Number of features; "infinite": see `reading`.
    C : float, default 300.0
        Weight of the loss of a row against one nat of its contrastive free energy. 0: the labels are not
        learned from, and the features are learned as those of `Harmonium`; all classes are then as likely.
    margin : float, default 1.0
        What a score must be ahead of the others; a larger one does what a larger prior variance of the votes
        does.
    dropout : "auto" or float, default "auto"
        Share of the cells that the classes do not see in each step. "auto": near one half for long rows
        (texts), little for short ones.
    reading : {"auto", "global"}, default "auto"
        Where an infinite number comes from. "auto": the chain graph of `Harmonium` finds it in the columns,
        without the labels, and at least one a class. "global": the algorithm of the paper, `truncation`
        features with sticks, which switch hardly any off; so it is for real units in any case.
    truncation, units, views, method, alpha, stick_expectation, batch_size, max_epochs, early_stopping,
    validation_fraction, callbacks, checkpoint, random_state, verbose
        See `Harmonium`.

    Attributes
    ----------
    classes_ : ndarray (C,)
    class_means_, class_spreads_ : ndarray (C, K)
        Mean and standard deviation of each feature over the rows of a class.
    temperature_ : float
        Scores are divided by it before the softmax that gives probabilities.
    n_active_, component_status_, components_, machine_, n_iter_, converged_, stop_reason_, trace_ :
        See `Harmonium`.

    References
    ----------
    Chen, Zhu, Sun and Zhang, IEEE Trans. Neural Networks and Learning Systems 25 (2014). Crammer and Singer,
    JMLR 2 (2001). Chen, Zhu, Sun and Xing, IEEE Trans. PAMI 34 (2012).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nongauss import HarmoniumClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HarmoniumClassifier(n_components=10, random_state=0).fit(X, y)
    >>> model.predict_proba(X[:3]).shape
    (3, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reading": [StrOptions({"auto", "global"})],
        "margin": [Interval(numbers.Real, 0, None, closed="left")],
        "C": [Interval(numbers.Real, 0, None, closed="left")],
        "dropout": [StrOptions({"auto"}), Interval(numbers.Real, 0, 1, closed="left")],
        **CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int | str = "infinite",
        *,
        C: float = 300.0,
        margin: float = 1.0,
        dropout: float | str = "auto",
        reading: str = "auto",
        truncation: int | str = "auto",
        units: str = "binary",
        views: Mapping[str, Any] | None = None,
        method: str = "cd",
        alpha: float = 1.0,
        stick_expectation: str = "accurate",
        batch_size: int = 256,
        max_epochs: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        callbacks: Sequence[Callable[..., Any]] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.C, self.margin, self.dropout = C, margin, dropout
        self.reading = reading
        self.truncation = truncation
        self.units = units
        self.views = views
        self.method = method
        self.alpha = alpha
        self.stick_expectation = stick_expectation
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, columns), dense, sparse or in parts (see `docs/scale.md`), and labels y (N,).

        A row of weight 2 counts as the row twice, one of weight 0 is not there. Raises ValueError.
        """
        self._check()
        seed = self._key_seed(self.random_state)
        coder, rows, labels, everywhere = self._labelled(X, y, sample_weight)
        assert labels is not None
        seed, checkpoint = self._opened(seed, coder, rows, everywhere)
        recipe = self._recipe(self._n_units(len(coder.units)), seed)
        without: tuple[str, ...] = ()
        if self.n_components == "infinite" and self.units == "binary" and self.reading == "auto":
            found, without = self._number(coder, rows, recipe, len(labels.classes), checkpoint)
            recipe = recipe._replace(n_components=found, has_sticks=False)
        dropout = None if self.dropout == "auto" else float(self.dropout)
        recipe = recipe._replace(
            C=float(self.C), margin=float(self.margin), dropout=dropout, n_classes=len(labels.classes)
        )
        filler = NO_FILLER
        if recipe.heeds_labels:
            filler = learn_filler(coder.layout, rows, seed)
            rows = filler.whole(coder.layout, rows)
            if everywhere is not None:
                everywhere = everywhere._replace(
                    source=everywhere.source.map(partial(filler.whole, coder.layout))
                )
        result, machine = self._by_contrast(coder, rows, recipe, everywhere, checkpoint, filler)
        hidden = self._keep(coder, machine, rows, None)
        self.component_status_ += without
        assert rows.labels is not None
        self.classes_ = labels.classes
        self.class_means_, self.class_spreads_ = readable.class_means(
            hidden, rows.weight, rows.labels, len(labels.classes)
        )
        self.temperature_ = _temperature(machine, rows, recipe)
        ended(checkpoint, result.status)
        self._record_fit(result)
        return self

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> Reading:
        """Units, rows and classes of a table, wherever it is."""
        if is_parted(X):
            return self._read_parts(X, y, sample_weight)
        name = type(self).__name__
        coder, table, weight = self._read(X, sample_weight)
        labels = LabelCoder.fit(y, weight, name)
        rows, _ = self._rows(coder, table, weight, labels.encode(y, len(weight), name, weight))
        return Reading(coder, rows, labels, None)

    def _number(
        self, coder: Coder, rows: Rows, recipe: Recipe, n_classes: int, checkpoint: Checkpoint | None
    ) -> tuple[int, tuple[str, ...]]:
        """How many features the columns call for, at least one a class, and why it does without others.

        It is counted to the end, however few epochs the classes are to be learned in, or KeyboardInterrupt.
        """
        result = find_features(
            coder.layout, rows, recipe._replace(max_epochs=None), True, QUICK, checkpoint=checkpoint
        )
        if result.status is Status.STOPPED:
            raise KeyboardInterrupt
        chain: Chain = result.state
        n_found = max(n_classes, chain.params.n_components)
        reasons = tuple(reason for reason in chain.reasons if reason != ACTIVE)
        return n_found, reasons[: max(0, len(chain.reasons) - n_found)]

    @by_parts
    def decision_function(self, X: Any) -> FloatArray:
        """Score of each class (N, C); with two classes, of the second against the first (N,)."""
        f = self._scores(X)
        return f[:, 1] - f[:, 0] if f.shape[1] == 2 else f

    @by_parts
    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest score of each row: (N,)."""
        best = self._scores(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    @by_parts
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log probability of each class: (N, C), finite."""
        return log_softmax(self._scores(X) / self.temperature_, axis=1)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1."""
        return np.exp(self.predict_log_proba(X))

    def _scores(self, X: Any) -> FloatArray:
        hidden = self._hidden(X)
        return scores(self.machine_.params, self.machine_.units, hidden).astype(np.float64)


def _temperature(machine: Machine, rows: Rows, recipe: Recipe) -> float:
    """The temperature that makes labels of training rows, with cells left out as in learning, most likely.

    Cells that are left out stand in for rows that were not trained on. One row more is of any class (Platt
    2000), so that no class is certain where all rows are right.
    """
    rng = np.random.default_rng(recipe.seed)
    share = max(dropout_share(recipe, rows), 0.1)
    f = scores(machine.params, machine.units, machine.hidden(dropped(rng, rows.X, share), rows.missing))
    weight = rows.weight / rows.weight.sum()
    own, any_class = (np.arange(len(f)), rows.labels), 1.0 / (1.0 + rows.weight.sum())

    def loss(log_temperature: float) -> float:
        log_p = log_softmax(f / np.exp(log_temperature), axis=1)
        return -float(weight @ ((1.0 - any_class) * log_p[own] + any_class * log_p.mean(axis=1)))

    best = minimize_scalar(loss, bounds=(-WIDEST, WIDEST), method="bounded")
    return float(np.exp(best.x))
