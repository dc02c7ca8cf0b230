"""`Harmonium`, what a user calls for features without labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from nongauss.core.errors import InputError
from nongauss.estimator.parameters import StrOptions
from nongauss.harmonium.common import CONSTRAINTS, HarmoniumBase
from nongauss.harmonium.fit import THOROUGH, has_room
from nongauss.harmonium.params import Rows
from nongauss.optimise.checkpoint import ended
from nongauss.tables.parted import is_parted


class Harmonium(HarmoniumBase):
    r"""Latent features of a table, as many as the data call for: a harmonium with a nonparametric prior.

    A row x has features z, a subset of K; each feature z_k has weights to all visible columns, whatever their
    kind (0 and 1, labels, real numbers, counts), p(x, z) \propto exp(eta' x + x' W z + beta' z). With
    `n_components="infinite"` the features have an Indian buffet process as prior and the fit keeps those
    that pay for their weights, so that their number follows the data.

    Parameters
    ----------
    n_components : "infinite" or int, default "infinite"
        Number of features; "infinite" finds it.
    truncation : "auto" or int, default "auto"
        Features that an infinite fit starts with; "auto": as many as columns, between 10 and 200.
    units : {"binary", "real"}, default "binary"
        "real": each feature that is on has a size of its own, normal (spike and slab).
    views : dict, default None
        Groups of columns by slice, list or mask, {"text": slice(0, 500), "colour": ["red", "green"]}; a value
        may be a pair of columns and kind, (columns, "binary"), "real" or "counts". Columns in no view are
        left out. None: all columns are one view. Kinds that are not given are detected: two values are
        binary, mostly zero whole numbers counts, others real.
    reading : {"auto", "global", "chain"}, default "auto"
        Which normalisation: over everything ("global", what the paper's algorithm learns), or of the columns
        given the features ("chain", its equation 5). "auto": "chain" for an infinite number of binary
        features, because only there does an idle feature cost anything, else "global"; and "global" for
        tables so wide (over 2,048 columns) that the chain would learn from fewer rows than columns.
    method : {"cd", "mean_field", "pcd", "lbfgs"}, default "cd"
        How the global reading learns: contrastive divergence from drawn features, with means instead (the
        paper's), with persistent chains; or the paper's full-batch L-BFGS on means, of a classifier with a
        hinge that is softened by a tenth: where classes tie, as at the start, its own has no gradient.
    alpha : float, default 1.0
        Expected number of features of a row under the prior.
    stick_expectation : {"accurate", "multinomial"}, default "accurate"
        How the global reading takes E log(1 - pi_k); "multinomial" is the paper's bound.
    batch_size : int, default 256
    max_epochs : int or None, default None
        None: 12 epochs, or more up to 600 steps; at most 400 iterations of the chain graph.
    early_stopping : bool, default False
        Global reading: hold out `validation_fraction` of the rows, stop when their contrastive free energy
        (of a classifier: their hinge loss) has not fallen for 5 epochs, and keep the best epoch. The
        chain reading and "lbfgs" end by their objective.
    validation_fraction : float in (0, 1), default 0.1
    callbacks : list of callables, default None
        Each is given a `Progress` after each epoch; one that returns True stops the fit.
    checkpoint : path, default None
        A file written every second or so; if it is there at the start and is of the same fit, the fit goes on
        from it and ends as if it had not been interrupted. Removed at the end.
    random_state : int, RandomState, Generator or None, default None
    verbose : int, default 0

    Attributes
    ----------
    n_active_ : int
        Number of features in use.
    component_status_ : tuple of str
        For each feature that the fit began with "active", or why it is not in use.
    components_ : ndarray (K, D)
        Weights of the features in use, the most used first; `encoded_names_` has the D names.
    use_ : ndarray (K,)
        Mean of each feature over the training rows.
    machine_ : Machine
        All parameters.
    n_iter_, converged_, stop_reason_, trace_ : how the fit went. The trace's bound is minus the contrastive
        free energy over all rows, or the variational bound for the chain reading.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reading": [StrOptions({"auto", "global", "chain"})],
        **CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int | str = "infinite",
        *,
        truncation: int | str = "auto",
        units: str = "binary",
        views: Mapping[str, Any] | None = None,
        reading: str = "auto",
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
        self.truncation = truncation
        self.units = units
        self.views = views
        self.reading = reading
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

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table X (N, columns), dense, sparse or in parts (see `docs/scale.md`); y is ignored.

        A row of weight 2 counts as the row twice, one of weight 0 is not there. Raises ValueError.
        """
        self._check()
        seed = self._key_seed(self.random_state)
        if self.reading == "chain" and self.units == "real":
            raise InputError(
                "The chain reading has binary units only; take units='binary' or reading='global'."
            )
        everywhere = None
        if is_parted(X):
            coder, rows, _, everywhere = self._read_parts(X, None, sample_weight)
        else:
            coder, table, weight = self._read(X, sample_weight)
            rows, _ = self._rows(coder, table, weight, None)
        seed, checkpoint = self._opened(seed, coder, rows, everywhere)
        recipe = self._recipe(self._n_units(len(coder.units)), seed)
        if self._is_chain(rows):
            result, machine, reasons = self._by_chain(coder, rows, recipe, THOROUGH, checkpoint)
            self._keep(coder, machine, rows, reasons if self.n_components == "infinite" else None)
        else:
            result, machine = self._by_contrast(coder, rows, recipe, everywhere, checkpoint)
            self._keep(coder, machine, rows, None)
        ended(checkpoint, result.status)
        self._record_fit(result)
        return self

    def _is_chain(self, rows: Rows) -> bool:
        if self.reading != "auto":
            return self.reading == "chain"
        return self.n_components == "infinite" and self.units == "binary" and has_room(*rows.X.shape)
