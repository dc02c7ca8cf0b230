"""`Harmonium`, what a user calls for features without labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nongauss.core.errors import InputError
from nongauss.estimator.base import (
    Callbacks,
    CheckpointPath,
    PositiveFloat,
    PositiveInt,
    RandomState,
    Share,
    Verbosity,
    check_parameters,
)
from nongauss.estimator.imputation import CellImputer, MissingLaws
from nongauss.harmonium.base import HarmoniumBase
from nongauss.harmonium.data import VisibleRows, encode
from nongauss.harmonium.fit import fit_chain, fit_global, has_room
from nongauss.harmonium.imputation import CellReader, complete, learn_reader
from nongauss.optimise.loop import close_checkpoint
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.filling import Gaps
from nongauss.tables.margins import Margin

FloatArray = NDArray[np.float64]


class Harmonium(CellImputer, HarmoniumBase):
    r"""Latent features of a table, as many as the data support: a harmonium with a nonparametric prior.

    A row x has features z, a subset of K; each feature z_k has weights to all visible columns, whatever their
    kind (0 and 1, labels, real numbers, counts), p(x, z) \propto exp(eta' x + x' W z + beta' z). With
    `n_components="infinite"` the features have an Indian buffet process prior, and the fit keeps those
    whose gain in fit outweighs the cost of their weights, so that the number of features follows from the
    data.

    Parameters
    ----------
    n_components : "infinite" or int, default "infinite"
        Number of features; "infinite" estimates it.
    truncation : "auto" or int, default "auto"
        Number of features that an infinite fit starts with; "auto": as many as columns, between 10 and 200.
    units : {"binary", "real"}, default "binary"
        "real": each feature that is on has a size of its own, normal (spike and slab).
    views : dict, default None
        Groups of columns by slice, list or mask, {"text": slice(0, 500), "colour": ["red", "green"]}; a value
        may be a pair of columns and kind, (columns, "binary"), "real" or "counts". Columns in no view are
        left out. None: all columns are one view. Kinds that are not given are detected: two values are
        binary, mostly zero whole numbers counts, others real.
    reading : {"auto", "global", "chain"}, default "auto"
        Normalisation of the model: over columns and features jointly ("global", the model of the paper's
        algorithm), or of the columns given the features ("chain", the paper's equation 5). "auto": "chain"
        for an infinite number of binary features, because only there an unused feature is penalised,
        otherwise "global"; also "global" for tables so wide (over 2,048 columns) that the chain would learn
        from fewer rows than columns.
    method : {"cd", "mean_field", "pcd", "lbfgs"}, default "cd"
        Training of the global version: contrastive divergence with sampled features, with means (the
        paper's), or maximum likelihood by centred persistent chains, for densities; or the paper's
        full-batch L-BFGS on means, in a classifier with a hinge that is smoothed by a tenth, because the
        plain hinge has no gradient where classes tie, as at the start.
    prior : {"auto", "beta"}, default "auto"
        Prior of the features. "auto": the Indian buffet process for an infinite number; for a given number,
        the biases are parameters. "beta": the finite form, of which the infinite one is the limit: pi_k is
        Beta(alpha / K, 1) for each of K features, with a posterior in closed form.
    noise : {"fixed", "learn"}, default "fixed"
        Noise variance of real columns in the global version: that of the column, or learned (sigma_1 of the
        paper). "learn" needs method="pcd"; the chain version always learns it. sigma_2, of real units, is
        not a separate parameter: it is a factor of the weights.
    alpha : float, default 1.0
        Expected number of features of a row under the prior.
    stick_expectation : {"accurate", "multinomial"}, default "accurate"
        How the global version computes E log(1 - pi_k); "multinomial" is the paper's bound.
    batch_size : int, default 256
    max_epochs : int or None, default None
        None: 12 epochs, 24 where labels or targets are learned (C > 0), or more up to 600 steps; at most 400
        iterations of the chain graph.
    early_stopping : bool, default False
        Global version: hold out `validation_fraction` of the rows, stop when their contrastive free energy
        (for a classifier: their hinge loss) has not fallen for 5 epochs, and keep the best epoch. The chain
        version and "lbfgs" stop by their objective.
    validation_fraction : float in (0, 1), default 0.1
    callbacks : list of callables, default None
        Each is called with a `Progress` after each epoch; the fit stops if one returns True.
    checkpoint : path, default None
        A file written about every second. If it exists at the start and belongs to the same fit, the fit
        resumes from it and ends as if it had not been interrupted. It is removed at the end.
    random_state : int, RandomState, Generator or None, default None
    verbose : int, default 0

    Attributes
    ----------
    n_active_ : int
        Number of features in use; where it is estimated, those that at least two columns go with. A feature
        that is the shape of one column alone, such as its tail, stays in the model and is not counted.
    component_status_ : tuple of str
        For each feature that the fit started with: "active", or why it is not in use.
    components_ : ndarray (K, D)
        Weights of the model's features, the most used first; `encoded_names_` has the D names. Above 0: rows
        with the feature have larger values.
    use_ : ndarray (K,)
        Mean of each feature over the training rows.
    machine_ : Machine
        All parameters.
    n_iter_, converged_, stop_reason_, trace_ : how the fit went. The trace's bound is minus the contrastive
        free energy over all rows, or the variational bound for the chain version.

    Raises
    ------
    ValueError
        For parameters or tables that cannot be used; one sentence with the remedy.

    References
    ----------
    Chen, Zhu, Sun and Zhang, IEEE Trans. Neural Networks and Learning Systems 25 (2014). Welling, Rosen-Zvi
    and Hinton, NIPS 2004. Jaakkola and Jordan, Statistics and Computing 10 (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from nongauss import Harmonium
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.random((500, 2)) < 0.3
    >>> X = rng.random((500, 30)) < np.where(np.repeat(Z, 15, axis=1), 0.7, 0.1)
    >>> model = Harmonium(random_state=0).fit(X)
    >>> model.n_active_
    2
    """

    def __init__(
        self,
        n_components: PositiveInt | Literal["infinite"] = "infinite",
        *,
        truncation: PositiveInt | Literal["auto"] = "auto",
        units: Literal["binary", "real"] = "binary",
        views: Annotated[Mapping[str, Any], dict] | None = None,
        reading: Literal["auto", "global", "chain"] = "auto",
        method: Literal["cd", "mean_field", "pcd", "lbfgs"] = "cd",
        prior: Literal["auto", "beta"] = "auto",
        noise: Literal["fixed", "learn"] = "fixed",
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
        self.truncation, self.units, self.views = truncation, units, views
        self.reading, self.method = reading, method
        self.prior, self.noise = prior, noise
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

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, columns), dense, sparse or in parts (see `docs/scale.md`); y is ignored.

        A row with weight 2 counts as the same row twice, a row with weight 0 as left out. Raises
        ValueError.
        """
        check_parameters(self)
        seed = self._key_seed(self.random_state)
        if self.reading == "chain" and self.units == "real":
            raise InputError(
                "The chain reading has binary units only; take units='binary' or reading='global'."
            )
        if self.prior == "beta" and self.n_components == "infinite":
            raise InputError("prior='beta' is of a finite number of features; give n_components.")
        if self.noise == "learn" and self.method != "pcd":
            raise InputError(
                f"noise='learn' needs method='pcd', got {self.method!r}: short chains do not leave what they "
                "begin with when noise is small."
            )
        table = self._read(X, None, sample_weight, "none")
        coder, rows = table.coder, table.rows
        seed, checkpoint = self._opened(seed, table)
        recipe, run = self._recipe(len(coder.units), seed), self._run(checkpoint)
        chain = None
        if self._is_chain(rows):
            prunes = self.n_components == "infinite"
            result, machine = fit_chain(coder.layout, rows, recipe, run, prunes=prunes)
            chain = result.state if prunes else None
        else:
            result, machine = fit_global(coder.layout, rows, recipe, run, all_rows=table.all_rows)
        self._keep(coder, machine, rows, chain)
        self._seed, self._reader = seed, learn_reader(table, machine, seed)
        close_checkpoint(checkpoint, result.status)
        self._record_fit(result)
        return self

    def _is_chain(self, rows: VisibleRows) -> bool:
        """Is the chain graph the model? As asked for, or where it alone finds the number of features."""
        if self.reading != "auto":
            return self.reading == "chain"
        return self.n_components == "infinite" and self.units == "binary" and has_room(*rows.X.shape)

    @property
    def _known_reader(self) -> CellReader:
        """How cells are read out of features. Raises NotFittedError, InputError where that is not known."""
        check_is_fitted(self, "machine_")
        reader: CellReader | None = getattr(self, "_reader", None)
        if reader is None:
            raise InputError(
                "This model cannot fill cells: it was fitted to a sparse table, one in parts, or by an older "
                "version; fit it to a dense table in memory."
            )
        return reader

    @property
    def _cell_margins(self) -> tuple[Margin, ...]:
        """The columns that can be filled. Raises NotFittedError, InputError."""
        return self._known_reader.margins

    @property
    def _cell_encoder(self) -> TableEncoder:
        """How the columns of the fit are read: as for rows without gaps."""
        return self._known_reader.encoder

    def _complete(self, gaps: Gaps, seed: int, n: int | None) -> MissingLaws:
        """What the missing cells may be, by the features that the others tell."""
        encoded, missing = encode(self._coder, gaps.table, type(self).__name__, warn=False)
        missing = np.zeros(encoded.shape, dtype=np.bool_) if missing is None else missing
        return complete(self._known_reader, self.machine_, (encoded, missing), gaps.missing, seed, n)
