"""Which laws are weighed: one registration each. A new likelihood, shape or family joins here.

A candidate serves some kinds of target. All that serve one kind give laws of one nature, densities or
probabilities, so that those which are compared and mixed can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nongauss.auto.candidate import Build, Candidate, ClassShares
from nongauss.core.errors import InputError
from nongauss.predictive.distribution import FloatArray
from nongauss.sparse_gp.config import (
    FEW_INDUCING,
    FEW_ROWS_A_COLUMN,
    FINE_INDUCING,
    MOST_EXACT,
    MOST_FINE,
)
from nongauss.sparse_gp.left_out import left_out_law, left_out_probabilities, n_parameters
from nongauss.sparse_gp.likelihoods import REGRESSION

REAL, POSITIVE, UNIT, ZEROS, UNIT_WITH_ENDS, COUNT = (
    "real",
    "positive",
    "share",
    "positive with zeros",
    "share with 0 or 1",
    "count",
)
LABELS, GRADES = "labels", "grades"
DENSITIES = (REAL, POSITIVE, UNIT)
"""Kinds whose laws have a density everywhere."""

MOST_JUDGED = 12_000
"""Rows by which fits are judged: more would tell the same. What is known only of all rows together, as which
member left out which row, is not asked of larger tables."""

QUICK: dict[str, Any] = {"n_scales": 1, "max_iter": 25, "hyper_parameters": "best"}
"""Of a Gaussian process in the screen: enough iterations to tell laws that suit the target from those that do
not."""

QUICK_INDUCING = 40
"""Inducing inputs in the screen of those that have them; where noise is Gaussian it is exact."""

MORE_ITERATIONS = 10
"""Of a fit to all rows that begins where one to most of them has ended."""

TOLERANCE = 3e-3
"""Of the fits of Gaussian processes: nats a row that twenty iterations have to gain. What more would gain is
less than what tells candidates apart."""

QUICK_EPOCHS = 150
"""Of a truncated-Gaussian model in the screen."""

LARGE, LARGE_SETTINGS = 4000, {"n_scales": 1, "n_inducing": 300, "max_iter": 60}
"""Rows from which a Gaussian process with Gaussian noise is made so that a fit takes a minute or less; what
is lost of its shape the local law of its residuals gives back."""

EXACT = ("gaussian", "log_normal")
"""Likelihoods with Gaussian noise, on the target or its logarithm."""

SCALES, FEWEST_FOR_SCALES = 2, 250
"""Terms of the function of other laws of measured numbers, smooth and rough, and the rows from which up to
`MOST_FINE` they can be told apart: the sum alone gives most of what its average with one function does, at
less than half the price (boston: 28 processor seconds instead of 45, and .013 nats more)."""

MEMBERS, MEMBERS_OF_LARGE = 5, 10
"""Members of a truncated-Gaussian model; and of one of numbers of `LARGE` rows and more (kin8nm alone: 1.375
nats a row instead of 1.349, for 1.5 times the time)."""

FEWEST_MEMBERS = 40
"""Rows from which members that leave out a fifth each can be judged."""

FEWEST_CELLS = 10_000
"""Rows times columns from which a truncated-Gaussian model of numbers is tried: on ten splits of five smaller
tables it gained .006 nats a row on average, .03 at most, and the search took twice as long."""


REGISTRY: dict[str, Candidate] = {}
"""Every candidate by its name, in the order in which they are tried: the most gain for its cost first."""


def register(candidate: Candidate) -> Candidate:
    """Add a candidate. Raises ValueError for a name that is there."""
    if candidate.name in REGISTRY:
        raise ValueError(f"There is a candidate {candidate.name!r} already.")
    REGISTRY[candidate.name] = candidate
    return candidate


def candidates_for(
    kind: str,
    n_rows: int,
    n_columns: int = 1,
    names: Sequence[str] | str = "auto",
    beside: Sequence[str] = (),
) -> list[Candidate]:
    """The candidates for a kind of target, or those of them that are named. Raises InputError.

    `beside`: what else may be named, of which errors tell too.
    """
    serving = [c for c in REGISTRY.values() if kind in c.kinds]
    if names == "auto":
        chosen = [c for c in serving if c.suits(n_rows, n_columns)]
        if not chosen:
            raise InputError(f"A choice needs two distinct rows at least, got {n_rows}; give more rows.")
        return chosen
    if isinstance(names, str):
        names = [names]
    known = {c.name: c for c in serving}
    all_names = ", ".join([*known, *beside])
    for name in names:
        if name not in known:
            raise InputError(
                f"There is no candidate {name!r} for a target of kind {kind}; there are: {all_names}."
            )
    if not names:
        raise InputError("candidates holds no name; give 'auto', or some of: " + all_names + ".")
    return [known[name] for name in dict.fromkeys(names)]


def _gp(**settings: Any) -> Build:
    """How a Gaussian process for numbers is made."""

    def build(seed: int, n_rows: int) -> Any:
        from nongauss.sparse_gp.estimator import SparseGPRegressor

        model = SparseGPRegressor(random_state=seed, **{"tol": TOLERANCE, **settings})
        if n_rows >= LARGE and model.likelihood in EXACT:
            model.set_params(**{**LARGE_SETTINGS, **settings})
        elif _is_rough(str(model.likelihood)):
            scales = SCALES if n_rows >= FEWEST_FOR_SCALES else 1
            own: dict[str, Any] = {"n_scales": scales} if n_rows <= MOST_FINE else {}
            if n_rows > MOST_EXACT:
                own["n_inducing"] = FINE_INDUCING if n_rows <= MOST_FINE else FEW_INDUCING
            model.set_params(**{**own, **settings})
        return model

    return build


def _is_rough(likelihood: str) -> bool:
    """Is it a law of numbers on a continuous scale other than with Gaussian noise?"""
    law = REGRESSION[likelihood]()
    return law.is_measured and not law.conjugate


def _gp_labels(name: str, **settings: Any) -> Build:
    """How a Gaussian process for labels is made, by its class's name."""

    def build(seed: int, n_rows: int) -> Any:
        from nongauss.auto import one_lengthscale
        from nongauss.sparse_gp import classifier

        home = classifier if hasattr(classifier, name) else one_lengthscale
        return getattr(home, name)(random_state=seed, **settings)

    return build


def _resume_gp(model: Any, former: Any) -> None:
    """Let a Gaussian process begin at the hyper-parameters of another, of which few steps are then enough."""
    model.begin_at(former).set_params(max_iter=MORE_ITERATIONS)


def _tggm(name: str, **settings: Any) -> Build:
    """How a truncated-Gaussian model is made: of members which together leave out each row once."""

    def build(seed: int, n_rows: int) -> Any:
        from nongauss.tggm import classifier, estimator

        home = estimator if name.endswith("Regressor") else classifier
        n_members = MEMBERS_OF_LARGE if n_rows >= LARGE and home is estimator else MEMBERS
        own = {"n_members": n_members, "validation_fraction": 1.0 / n_members}
        return getattr(home, name)(random_state=seed, **own, **settings)

    return build


def _two_humps(seed: int, n_rows: int) -> Any:
    """Two Gaussian processes and a classifier between them, for residuals with two humps."""
    from nongauss.auto.humps import TwoHumps

    return TwoHumps(random_state=seed)


def _limited(seed: int, n_rows: int) -> Any:
    """A Gaussian process for targets that are cut off at an end."""
    from nongauss.auto.limits import LimitedGP

    return LimitedGP(random_state=seed, n_scales=SCALES)


def _limited_law(model: Any, X: Any, y: FloatArray, weight: FloatArray) -> Any:
    from nongauss.auto.limits import limited_left_out as found

    return found(model, X, y, weight)


def _gp_law(
    model: Any,
    X: Any,
    y: FloatArray,
    weight: FloatArray,
    exposure: Any = None,
    **limits: Any,
) -> Any:
    """See `left_out_law`; `limits` are those of the fit."""
    from nongauss.sparse_gp.beside import interval_ends

    ends = interval_ends(y, limits, model.posterior_.likelihood) if limits else None
    return left_out_law(model, X, y if ends is None else ends, weight, exposure)


def _tggm_law(model: Any, X: Any, y: FloatArray, weight: FloatArray) -> Any:
    from nongauss.tggm.left_out import left_out_law as found

    return found(model, X, y, weight)


def _tggm_gain(model: Any, X: Any, y: FloatArray, weight: FloatArray) -> float:
    from nongauss.tggm.left_out import gain_of_average as found

    return found(model, X, y, weight)


def _gp_shares(model: Any, X: Any, labels: Any, weight: FloatArray) -> ClassShares:
    return ClassShares(model.classes_, left_out_probabilities(model, X, _codes(model, labels), weight))


def _tggm_shares(model: Any, X: Any, labels: Any, weight: FloatArray) -> ClassShares:
    from nongauss.tggm.left_out import left_out_probabilities as found

    return ClassShares(model.classes_, found(model, X, _codes(model, labels), weight))


def _codes(model: Any, labels: Any) -> FloatArray:
    """The number of each label in the classes of a model."""
    codes: FloatArray = pd.Index(model.classes_).get_indexer(pd.Index(np.asarray(labels))).astype(np.float64)
    return codes


def _n_stopped(model: Any) -> int:
    """Each member of a truncated-Gaussian model stops where the rows that judge it say."""
    return int(model.n_members)


LAWS: list[tuple[str, Sequence[str], dict[str, Any], float]] = [
    ("gp", DENSITIES, {}, 4.0),
    ("gp gamma", (POSITIVE, UNIT), {"likelihood": "gamma"}, 1.5),
    ("gp log_normal", (POSITIVE, UNIT), {"likelihood": "log_normal"}, 1.0),
    ("gp beta", (UNIT,), {"likelihood": "beta"}, 2.0),
    ("gp heteroscedastic", DENSITIES, {"likelihood": "heteroscedastic"}, 1.5),
    ("gp student_t", DENSITIES, {"likelihood": "student_t"}, 1.5),
    ("gp laplace", DENSITIES, {"likelihood": "laplace"}, 1.5),
    ("gp weibull", (POSITIVE,), {"likelihood": "weibull"}, 1.5),
    ("gp hurdle_gamma", (ZEROS,), {"likelihood": "hurdle_gamma"}, 2.0),
    ("gp hurdle_log_normal", (ZEROS,), {"likelihood": "hurdle_log_normal"}, 2.0),
    ("gp zero_one_beta", (UNIT_WITH_ENDS,), {"likelihood": "zero_one_beta"}, 2.0),
    ("gp negative_binomial", (COUNT,), {"likelihood": "negative_binomial"}, 1.5),
    ("gp poisson", (COUNT,), {"likelihood": "poisson"}, 1.0),
    ("gp zero_inflated_poisson", (COUNT,), {"likelihood": "zero_inflated_poisson"}, 2.0),
    ("gp zero_inflated_negative_binomial", (COUNT,), {"likelihood": "zero_inflated_negative_binomial"}, 2.0),
    ("gp hurdle_negative_binomial", (COUNT,), {"likelihood": "hurdle_negative_binomial"}, 2.0),
    ("gp poisson_square", (COUNT,), {"likelihood": "poisson_square"}, 1.0),
    ("gp discretised", (COUNT,), {"likelihood": "discretised"}, 2.0),
    ("gp discretised_student_t", (COUNT,), {"likelihood": "discretised_student_t"}, 2.0),
]
"""Gaussian processes for numbers: name, kinds, settings, cost. The order is that in which they are tried."""


PLAIN = "gp"
"""The candidate that is fitted past the screen, or its best variant. There it has one function of a few rows,
whose misfit other laws make up for; of all rows it has four, and with a local law often predicts most."""

CONSTANTS = [
    ("constant count", (COUNT,), "negative_binomial"),
    ("constant with zeros", (ZEROS,), "hurdle_gamma"),
    ("constant share", (UNIT_WITH_ENDS,), "zero_one_beta"),
]
"""Laws without columns of targets that have no density everywhere: name, kinds, likelihood."""


def _register_numbers() -> None:
    """Gaussian processes for numbers, by likelihood; those that this version does not have are skipped."""
    for name, kernel in (("constant", "constant"), ("linear", "linear")):
        settings = {"kernel": kernel, "n_scales": 1, "n_inducing": 50}
        flags = {"is_floor": True, "is_constant": name == "constant", "local": name != "constant"}
        _register_gp(name, DENSITIES, settings, 0.2, **flags)
    kinds: Sequence[str]
    for name, kinds, likelihood in CONSTANTS:
        if likelihood in REGRESSION:
            settings = {"kernel": "constant", "n_scales": 1, "n_inducing": 50, "likelihood": likelihood}
            _register_gp(name, kinds, settings, 0.2, is_floor=True, is_constant=True, local=False)
    for name, kinds, settings, cost in LAWS:
        if settings.get("likelihood", "gaussian") not in REGRESSION:
            continue
        more: dict[str, Any] = {"alike": name, "past_screen": name == PLAIN}
        _register_gp(name, kinds, settings, cost, **more)
        if name in ("gp", "gp negative_binomial", "gp hurdle_gamma"):
            _register_gp(f"{name}, arcsinh inputs", kinds, settings, cost, arcsinh=True, **more)
        if name == PLAIN:
            _register_gp(f"{name}, group effects", kinds, settings, cost, group_effects=True, **more)


def _register_beside() -> None:
    """What is no Gaussian process for numbers with a likelihood of its own."""
    both = frozenset((REAL, POSITIVE))
    register(Candidate("gp, to its limit", both, _limited, _limited_law, n_parameters, 2.0))
    register(
        Candidate(
            "gp, two humps",
            both,
            _two_humps,
            lambda model, X, y, weight: model.left_out(X, y, weight),
            lambda model: float(model.n_parameters),
            6.0,
            fewest_rows=100,
            most_rows=MOST_JUDGED,
        )
    )
    register(
        Candidate(
            "tggm",
            frozenset(DENSITIES),
            _tggm("TGGMRegressor"),
            _tggm_law,
            _n_stopped,
            6.0,
            quick=_tggm("TGGMRegressor", max_epochs=QUICK_EPOCHS),
            gain_of_average=_tggm_gain,
            family="tggm",
            most_rows=MOST_JUDGED,
            fewest_rows=FEWEST_MEMBERS,
            fewest_cells=FEWEST_CELLS,
        )
    )


def _is_exact(settings: Mapping[str, Any]) -> bool:
    """Is the noise of a Gaussian process with these settings Gaussian?"""
    return settings.get("likelihood", "gaussian") in EXACT


def _register_gp(
    name: str, kinds: Sequence[str], settings: Mapping[str, Any], cost: float, **more: Any
) -> None:
    """A Gaussian process for numbers."""
    few = {} if _is_exact(settings) else {"n_inducing": QUICK_INDUCING}
    quick = _gp(**{**settings, **QUICK, **few})
    build = _gp(**settings)
    kept = frozenset(kinds)
    more = {"takes_limits": kept <= set(DENSITIES), **more}
    register(
        Candidate(name, kept, build, _gp_law, n_parameters, cost, quick=quick, resume=_resume_gp, **more)
    )


def _register_labels() -> None:
    """Models of labels and of grades."""
    both = (LABELS, GRADES)
    floors = {f"{kernel} labels": {"kernel": kernel, "n_inducing": 50} for kernel in ("constant", "linear")}
    one = "OneLengthscaleClassifier"
    arcsinh = ", arcsinh inputs"
    models: list[tuple[str, Sequence[str], str, dict[str, Any], float]] = [
        *((name, both, "SparseGPClassifier", settings, 1.0) for name, settings in floors.items()),
        ("linear labels, one scale", both, one, floors["linear labels"], 1.0),
        (f"linear labels{arcsinh}", both, "SparseGPClassifier", floors["linear labels"], 1.0),
        ("gp labels", both, "SparseGPClassifier", {}, 3.0),
        (f"gp labels{arcsinh}", both, "SparseGPClassifier", {}, 3.0),
        ("gp labels, one scale", both, one, {}, 2.0),
        ("gp grades", (GRADES,), "SparseGPOrdinalClassifier", {}, 2.0),
    ]
    for name, kinds, class_name, settings, cost in models:
        kept, build = frozenset(kinds), _gp_labels(class_name, **settings)
        more: dict[str, Any] = {"resume": _resume_gp, "is_floor": "kernel" in settings}
        more["is_constant"] = settings.get("kernel") == "constant"
        more["arcsinh"] = name.endswith(arcsinh)
        if class_name == one:
            more["most_rows_a_column"] = FEW_ROWS_A_COLUMN
        if name.startswith("gp labels"):
            more["alike"] = "gp labels"
        register(Candidate(name, kept, build, _gp_shares, n_parameters, cost, **more))
    sizes: dict[str, Any] = {"most_rows": MOST_JUDGED, "fewest_rows": FEWEST_MEMBERS}
    for name in ("tggm labels", f"tggm labels{arcsinh}"):
        more = {"family": "tggm", "alike": "tggm labels", "arcsinh": name.endswith(arcsinh), **sizes}
        register(
            Candidate(name, frozenset(both), _tggm("TGGMClassifier"), _tggm_shares, _n_stopped, 6.0, **more)
        )


_register_numbers()
_register_beside()
_register_labels()
