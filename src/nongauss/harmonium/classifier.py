"""`HarmoniumClassifier`, what a user calls for features that tell classes apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.base import ClassifierMixin

from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Dropout,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Share,
    Verbosity,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.estimator.explain import ExplainMixin
from nongauss.harmonium.base import FloatArray
from nongauss.harmonium.fit import class_temperature
from nongauss.harmonium.predict import class_means
from nongauss.harmonium.supervised import SupervisedHarmonium
from nongauss.optimise.loop import close_checkpoint
from nongauss.tables.labels import LabelCoder


class HarmoniumClassifier(ExplainMixin, ClassifierMixin, SupervisedHarmonium):  # type: ignore[misc]
    r"""Classification by latent features that are learned with a large margin between classes.

    A harmonium (see `Harmonium`) whose feature means E[z | x] feed a multiclass linear classifier; both are
    learned together: contrastive divergence of the columns plus C times the Crammer-Singer loss
    max_y [margin 1(y != y_d) + f_y - f_{y_d}] of each row. With several views, each step hides one of them
    in half of its rows; missing cells are replaced by their expectation given the others (see `Filler`).

    Parameters
    ----------
    n_components : "infinite" or int, default "infinite"
        Number of features; "infinite": see `reading`.
    C : float, default 300.0
        Weight of the loss of a row against one nat of its contrastive free energy. 0: the labels are
        ignored, the features are learned as in `Harmonium`, and all classes are equally likely.
    margin : float, default 1.0
        By how much the score of the true class must exceed the others; a larger margin has the same effect
        as a larger prior variance of the votes.
    dropout : "auto" or float, default "auto"
        Share of the cells that are hidden from the classifier in each step. "auto": near one half for long
        rows (texts), little for short ones.
    raw_features : bool, default False
        Let the columns vote beside the features, in one large-margin classifier. This helps if classes
        differ in single columns, and harms if there are few rows and many columns.
    reading : {"auto", "global"}, default "auto"
        How an infinite number of features is chosen. "auto": by the chain graph of `Harmonium` from the
        columns, without the labels, at least one for each class. "global": by the paper's algorithm,
        `truncation` features with stick-breaking weights, which switches hardly any off; always used for
        real units.
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
    raw_votes_ : ndarray (C, D), or (C, 0) without `raw_features`
        Contribution of each column, as in `encoded_names_`, to the score of each class.
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

    def __init__(
        self,
        n_components: PositiveInt | Literal["infinite"] = "infinite",
        *,
        C: NonNegativeFloat = 300.0,
        margin: NonNegativeFloat = 1.0,
        dropout: Dropout = "auto",
        raw_features: bool = False,
        reading: Literal["auto", "global"] = "auto",
        truncation: PositiveInt | Literal["auto"] = "auto",
        units: Literal["binary", "real"] = "binary",
        views: Annotated[Mapping[str, Any], dict] | None = None,
        method: Literal["cd", "mean_field", "pcd", "lbfgs"] = "cd",
        alpha: PositiveFloat = 1.0,
        stick_expectation: Literal["accurate", "multinomial"] = "accurate",
        batch_size: PositiveInt = 256,
        max_epochs: PositiveInt | None = None,
        early_stopping: bool = False,
        validation_fraction: Share = 0.1,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.n_components = n_components
        self.C, self.margin, self.dropout = C, margin, dropout
        self.raw_features, self.reading = raw_features, reading
        self.truncation, self.units = truncation, units
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

        A row with weight 2 counts as the same row twice, a row with weight 0 as left out. Raises
        ValueError.
        """
        table = self._checked_table(X, y, sample_weight, "classes")
        assert isinstance(table.target, LabelCoder)
        classes = table.target.classes
        learned = self._learned(table, X, y, sample_weight, len(classes))
        rows, labels = learned.rows, learned.rows.labels
        assert labels is not None
        self.classes_ = classes
        self.class_means_, self.class_spreads_ = class_means(
            learned.hidden, rows.weight, labels, len(classes)
        )
        self.temperature_ = class_temperature(learned.machine, rows, learned.recipe)
        close_checkpoint(learned.checkpoint, learned.result.status)
        self._record_fit(learned.result)
        return self

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
        log_p: FloatArray = log_softmax(self._scores(X) / self.temperature_, axis=1)
        return log_p

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of `classes_`: (N, C), rows sum to 1."""
        P: FloatArray = np.exp(self.predict_log_proba(X))
        return P

    def _scores(self, X: Any) -> FloatArray:
        """Score of each class, (N, C), rows in memory."""
        found: FloatArray = self._over_cells(X, lambda f: f, self._score_of_mean)
        return found

    def _score_of_mean(self, each: FloatArray) -> FloatArray:
        """Scores (N, C) whose probabilities are the mean of those of scores (S, N, C)."""
        T = self.temperature_
        found: FloatArray = T * logsumexp(log_softmax(each / T, axis=2) - np.log(len(each)), axis=0)
        return found
