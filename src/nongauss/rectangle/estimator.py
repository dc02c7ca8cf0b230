"""`RectangleMixture`, what a user calls. Wiring: a table to rows, a fit to rules and words."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    Interval,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    RandomState,
    TableEstimator,
    Verbosity,
    check_parameters,
    settings_of,
)
from nongauss.estimator.by_parts import by_parts
from nongauss.optimise.checkpoint import Checkpoint
from nongauss.optimise.loop import close_checkpoint, open_checkpoint
from nongauss.rectangle.choose_columns import telling_columns
from nongauss.rectangle.choose_k import choose
from nongauss.rectangle.config import RectangleRecipe, StructureKind
from nongauss.rectangle.data import (
    ColumnViews,
    FloatArray,
    IntArray,
    RawCells,
    RectangleRows,
    learn_view,
    merge,
    names_of_rows,
    places_of,
    read_columns,
    rows_to_fit,
)
from nongauss.rectangle.fit import ClusterTask, check_number, fit, rule_stability
from nongauss.rectangle.params import ALPHA, BETA, RectangleParams
from nongauss.rectangle.predict import FittedRectangles, tally_of
from nongauss.rectangle.stated import NOTHING_STATED, read_prior
from nongauss.rectangle.words import (
    cluster_table,
    description,
    quiet_columns,
    row_sentences,
    rule_table,
    rule_texts,
    rule_values,
    told_of_empty,
    warn_far,
    warn_names,
)
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.learn import as_source, learn
from nongauss.tables.source import Source, itself

if TYPE_CHECKING:
    import pandas as pd

Columns = Annotated[Any, "array-like", str, numbers.Integral, None]
"""Names or positions of columns of a table; None: all."""


class RectangleMixture(ClusterMixin, TableEstimator):  # type: ignore[misc]
    r"""Clusters that are rectangles: a readable rule for each, such as "age 30 to 45 and pay at least 60000".

    Every row belongs to one of K clusters. Its rule columns x lie inside the cluster's rectangle and
    outside all others, and its structure columns y follow the cluster's distribution,

    .. math:: \prod_n \sum_k \tfrac1K \, p_\theta(y_n \mid k)\, G_{nk} \prod_{j \ne k} (1 - G_{nj}),

    where G is a product of logistic functions, one for each bound. EM estimates rectangles and structure
    together from several starts, while the logistic functions become steeper; an exact search then finds a
    few hard bounds. Columns may have any units, missing cells and categorical columns are handled; a
    missing cell violates no rule.

    Parameters
    ----------
    n_clusters : int or "auto", default "auto"
        Number K of clusters; those that end without rows are left out. "auto": the groups that are
        separated by valleys of the density, divided further, up to 10, if rules then explain the structure
        columns significantly better, by twice the gain in simulated tables of only the clusters found so
        far.
    rule_columns, structure_columns : list of names or positions, default None (all)
        Columns that the rules may use, and columns in which rows of a cluster are similar. The parts of a
        date column may be named separately: "day (month)".
    structure : {"student_t", "full", "diagonal", "shared"}, default "student_t"
        Distribution of the structure columns within a cluster: Student's t with 4 degrees of freedom, which
        is robust to outliers; a Gaussian with its own covariance, with variances only, or with one
        covariance for all clusters. Categorical columns have a probability for each level.
    scaling : {"standard", "rank"}, default "standard"
        "rank" replaces the values of each column by ranks, so that even gross outliers have no influence.
    prior_rules : dict, default None
        Rules known beforehand, {"cluster name": {"age": (30, 45), "colour": ["red"]}}, in original units;
        None is an open end. The other clusters are free.
    prior_strength : float, default 100
        Precision of a prior bound: it stays within 1 / sqrt(prior_strength) standard deviations of its
        column unless rows contradict it. Widths of prior rules are not shrunk.
    rule_tolerance : float, default 0.01
        Share of the rows that may be misclassified in addition in order to have fewer conditions.
    rule_precision : "auto", int or None, default "auto"
        Digits of printed bounds: the fewest that separate the same rows; decimals as in `round`; or None,
        the middle between the nearest rows. Predictions always use the middle.
    max_boxes : int, default 1
        Maximum number of boxes of a cluster, a rule "A or B". A further one must gain `rule_tolerance` of
        the rows for each of its conditions.
    preset : "paper" or None, default None
        "paper" is the model as published: Gaussians by maximum likelihood instead of `structure`, one slope
        from the start, and the soft boxes themselves as the rule, without search or rounding.
    alpha, beta : float, default 0.1 and 1
        Prior precisions of bounds without prior rules, around the column's mean, and of widths, in standard
        deviations of the column.
    slope : float, default None
        Slope of the soft bounds, per standard deviation: 20, after 5 and 10, or 10 with the paper's preset.
    outliers : bool, default False
        Whether `labels_` and `predict` give -1 to rows outside every rectangle, not the nearest cluster.
    n_init : int, default 10
        Number of starts.
    max_iter, tol : int, default 200, and float, default 1e-5
        Maximum number of EM iterations of the best start, and the gain in nats a row below which they end.
    callbacks, random_state, verbose : as everywhere in nongauss.
    checkpoint : path, default None
        A file written about every second. If it exists at the start and belongs to the same fit, the fit
        resumes from it and ends as if it had not been interrupted. It is removed at the end.

    Attributes
    ----------
    rules_ : DataFrame
        One row for each condition: cluster, column, lower, upper (inclusive, original units), levels.
    rule_text_ : dict
        The rule of each cluster as a sentence.
    clusters_ : DataFrame
        For each cluster: rows (their weight), inside (weight of rows inside its rule), precision (share of
        the rows inside that belong to the cluster by soft boxes and structure, not `predict_posterior`),
        recall (share of the cluster's rows that are inside).
    labels_ : ndarray (N,)
        Cluster of each row by its rule; None after a fit to a table in parts.
    cluster_names_, n_clusters_ : names and number of the clusters; prior rules first, then the largest.
    inside_one_ : float
        Share of the rows inside exactly one rectangle.
    quiet_columns_ : list of str
        Numeric columns that are left out of structure and rules because the clusters do not differ in them.
    criterion_ : dict
        With n_clusters="auto": the criterion in nats for each number tried, minus infinity where a cluster
        had too few rows. Empty if valleys of the density alone decided.
    why_n_clusters_ : evidence for the number of n_clusters="auto" and against others, as text.
    n_iter_, converged_, stop_reason_, trace_ : how the last stage of the fit went.

    Raises
    ------
    ValueError
        For parameters and tables that cannot be used; one sentence with the remedy.

    References
    ----------
    Chen et al., Interpretable clustering via discriminative rectangle mixture model, ICDM 2016, and its
    supplement on EM, whose equations `NOTATION.md` names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nongauss import RectangleMixture
    >>> X = load_iris(as_frame=True).data
    >>> model = RectangleMixture(3, random_state=0).fit(X)
    >>> sorted(model.rule_text_.values())[0].split(" at ")[0]
    'petal length (cm)'
    """

    quiet_columns_: Sequence[str] = ()

    def __init__(
        self,
        n_clusters: PositiveInt | Literal["auto"] = "auto",
        *,
        rule_columns: Columns = None,
        structure_columns: Columns = None,
        structure: StructureKind = "student_t",
        scaling: Literal["standard", "rank"] = "standard",
        prior_rules: Annotated[Mapping[str, Mapping[Any, Any]], dict] | None = None,
        prior_strength: PositiveFloat = 100.0,
        rule_tolerance: Annotated[float, Interval(numbers.Real, 0, 1, closed="left")] = 0.01,
        rule_precision: Literal["auto"] | int | None = "auto",
        max_boxes: PositiveInt = 1,
        preset: Literal["paper"] | None = None,
        alpha: PositiveFloat = ALPHA,
        beta: NonNegativeFloat = BETA,
        slope: PositiveFloat | None = None,
        outliers: bool = False,
        n_init: PositiveInt = 10,
        max_iter: PositiveInt = 200,
        tol: NonNegativeFloat = 1e-5,
        callbacks: Callbacks = None,
        checkpoint: CheckpointPath = None,
        random_state: RandomState = None,
        verbose: Verbosity = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.rule_columns, self.structure_columns = rule_columns, structure_columns
        self.structure, self.scaling = structure, scaling
        self.prior_rules, self.prior_strength = prior_rules, prior_strength
        self.rule_tolerance, self.rule_precision = rule_tolerance, rule_precision
        self.max_boxes, self.preset = max_boxes, preset
        self.alpha, self.beta, self.slope = alpha, beta, slope
        self.outliers = outliers
        self.n_init = n_init
        self.max_iter, self.tol = max_iter, tol
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find clusters and rules in a table X (N, D); y is ignored.

        X may be in parts (see `docs/scale.md`). With many rows, wherever they are, rules are learned from
        the same sample and evaluated on all. A row with weight 2 counts as the same row twice, a row with
        weight 0 as left out. Warns about columns that are ignored, clusters left without rows, and fits
        that did not end well. Raises ValueError.
        """
        check_parameters(self)
        name = type(self).__name__
        seed = self._key_seed(self.random_state)
        source = as_source(X, None, sample_weight, estimator_name=name)
        whole = learn(source, name, scaled=False).encoder
        rows, weight = rows_to_fit(source, whole, name)
        task = self._task(rows, whole, weight)
        seed, checkpoint = self._opened(seed, task.rows, whole, float(weight.sum()))
        n_clusters = 1 if self.n_clusters == "auto" else int(self.n_clusters)
        recipe = settings_of(RectangleRecipe, self, n_clusters=n_clusters, seed=seed)
        self.criterion_, self.why_n_clusters_ = None, None
        if self.n_clusters == "auto":
            chosen, self.criterion_, self.why_n_clusters_ = choose(task, recipe, checkpoint)
            recipe = recipe._replace(n_clusters=chosen)
        check_number(recipe.n_clusters, task, len(weight))
        every, task = task.views, telling_columns(task, recipe)
        self.quiet_columns_ = quiet_columns(every.structure, task.views.structure)
        result, self._fitted = fit(task, recipe, self._run(checkpoint))
        self._keep_encoder(whole)
        self._keep_words(source, result.state)
        if self.n_clusters_ < recipe.n_clusters:
            self.why_n_clusters_ = told_of_empty(self.why_n_clusters_, recipe.n_clusters, self.n_clusters_)
        close_checkpoint(checkpoint, result.status)
        self._record_fit(result)
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> IntArray:
        """`fit`, then the cluster of each row by its rule, (N,)."""
        found: IntArray | None = self.fit(X, y, **fit_params).labels_
        labels: IntArray = self.predict(X) if found is None else found
        return labels

    @by_parts
    def predict(self, X: Any) -> IntArray:
        """Cluster of each row by the rules alone, (N,): X may lack all but the rule columns.

        A row outside every rule goes to the nearest one, or is -1 with `outliers`; a row inside several
        goes to the one in which it lies deepest. Distances are scaled by the slope of each rule.
        """
        fitted, cells = self._read(X)
        return fitted.labels(cells, self.outliers)

    @by_parts
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each cluster by the rules alone, (N, K); rows sum to 1."""
        fitted, cells = self._read(X)
        return fitted.proba(cells)

    @by_parts
    def predict_posterior(self, X: Any) -> FloatArray:
        """Probability of each cluster by rules and structure columns together, (N, K); rows sum to 1."""
        fitted = self._of_fit()
        return fitted.posterior(*fitted.views.read(X, self._encoder, type(self).__name__))

    @by_parts
    def inside(self, X: Any) -> np.ndarray:
        """Whether each row is inside each rule, (N, K) booleans."""
        fitted, cells = self._read(X)
        return fitted.inside(cells)

    def row_rules(self, X: Any) -> pd.Series:
        """A sentence for each row: the rule that it meets, and how far inside its nearest bound it is.

        For a row outside every rule: the nearest rule, and by how much it is missed. Amounts are in the
        units of the columns.
        """
        import pandas as pd

        fitted, cells = self._read(X)
        told = row_sentences(fitted.rules, fitted.views.rule.codes, cells, fitted.claims(cells))
        return pd.Series(told, index=X.index if isinstance(X, pd.DataFrame) else None, dtype=object)

    def rule_stability(self, X: Any, n_resamples: int = 10) -> pd.Series:
        """How well each rule is found again in resampled rows, 0 to 1, by the names of the clusters.

        The rows of X, the training table, at most 500, are resampled and clustered again. The figure is the
        mean Jaccard similarity of a rule and the most similar new rule: the share of rows that both contain
        among those that either contains (Hennig, CSDA 2007). A rule below .6 is unreliable. Not for
        `preset="paper"`, which searches no rules.
        """
        import pandas as pd

        fitted = self._of_fit()
        if fitted.soft is not None:
            raise InputError("rule_stability is not available for preset='paper'; fit with preset=None.")
        cells, rows = fitted.views.read(X, self._encoder, type(self).__name__)
        recipe = settings_of(RectangleRecipe, self, n_clusters=self.n_clusters_, seed=0)
        figures = rule_stability(fitted, cells, rows, recipe, n_resamples)
        return pd.Series(figures, index=pd.Index(self.cluster_names_, name="cluster"), name="stability")

    def describe(self) -> str:
        """The rules with size, precision and recall, and the evidence for the number of clusters."""
        check_is_fitted(self, "rules_")
        why = vars(self).get("why_n_clusters_")
        return description(self.rule_text_, self.clusters_, self.inside_one_, why, self.quiet_columns_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = False  # to scikit-learn: whole numbers would stand for classes
        return tags

    def _of_fit(self) -> FittedRectangles:
        """What the fit left behind; files of version 0.1.0 hold its parts one by one."""
        check_is_fitted(self, "rules_")
        own = vars(self)
        if "_fitted" not in own:
            views = ColumnViews(own["_rule"], own["_look"])
            return FittedRectangles(views, own["_rules"], own["_structure"], self.structure)
        return self._fitted

    def check_loaded(self) -> None:
        """Raises ValueError where rules, clusters and what is told of them do not fit each other."""
        told = {"cluster", "rows", "precision", "recall"} <= set(self.clusters_.columns)
        told = told and set(self.rule_text_) == set(self.clusters_["cluster"])
        if not told or not isinstance(self._of_fit(), FittedRectangles):
            raise ValueError("rules that are not those of the clusters")

    def _read(self, X: Any) -> tuple[FittedRectangles, RawCells]:
        """What the fit left behind, and the rule columns of X."""
        fitted = self._of_fit()
        return fitted, fitted.views.rule.read(X, self._encoder, type(self).__name__)

    def _rule_values(self, X: Any) -> Any:
        """The rule columns of X as bounds are measured in them: numbers, or the levels of labels as text."""
        fitted, cells = self._read(X)
        return rule_values(fitted.views.rule.codes, cells)

    def _rule_words(self) -> dict[str, Callable[[float], str]]:
        """How the values of rule columns are written that are no plain numbers, such as dates, by name."""
        view = self._of_fit().views.rule
        codes = view.codes[: len(view.numeric)]
        return {str(code.name): code.shown for code in codes if code.kind not in ("", "number")}

    def _task(self, X: Any, whole: TableEncoder, weight: FloatArray) -> ClusterTask:
        """The rows that are learned from, and the rules stated beforehand."""
        asked = {"rule_columns": self.rule_columns, "structure_columns": self.structure_columns}
        both = [places_of(chosen, whole, parameter) for parameter, chosen in asked.items()]
        every = tuple(dict.fromkeys(place for places in both for place in places))
        columns = read_columns(X, whole, every, type(self).__name__, warn=False)
        views = ColumnViews(*(learn_view(columns, whole, places, weight, self.scaling) for places in both))
        warn_names(names_of_rows(views))
        rows, cells = merge(views, columns, weight)
        if self.scaling == "standard":
            warn_far(views.rule, cells, rows.weight)
        stated = NOTHING_STATED
        if self.prior_rules is not None:
            stated = read_prior(self.prior_rules, views.rule, float(self.prior_strength))
        return ClusterTask(rows, cells, views, stated)

    def _opened(
        self, seed: int, rows: RectangleRows, whole: TableEncoder, total: float
    ) -> tuple[int, Checkpoint | None]:
        """The seed that the fit to these rows began with, and where it is kept."""
        arrays = (rows.X, rows.X_labels, rows.Y, rows.Y_labels, rows.weight)
        told = arrays, self._settings_that_matter(), whole, total
        return open_checkpoint(self.checkpoint, seed, self.random_state, *told)

    def _keep_words(self, source: Source, params: RectangleParams) -> None:
        """Set what a user reads: the rules, and how all rows of the source are judged by them."""
        views, rules = self._fitted.views, self._fitted.rules
        self.rules_, self.rule_text_ = rule_table(rules), rule_texts(rules, views.rule.codes)
        self.cluster_names_ = list(rules.names)
        self.n_clusters_ = len(self.cluster_names_)
        tally = source.sum(tally_of, self._encoder, type(self).__name__, self._fitted, params)
        self.clusters_ = cluster_table(rules.names, tally)
        self.inside_one_ = tally.inside_one / tally.total
        self.labels_ = None
        if source.in_memory:
            (part,) = source.each(itself)
            cells = views.rule.read(part.X, self._encoder, type(self).__name__, warn=False)
            self.labels_ = self._fitted.labels(cells, self.outliers)
