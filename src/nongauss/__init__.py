"""Regression, classification and structure for tables whose columns are not Gaussian.

Public names are imported on first use, so ``import nongauss`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import metrics
    from .auto.classifier import AutoClassifier
    from .auto.imputer import AutoImputer
    from .auto.regressor import AutoRegressor
    from .core.device import cache_compiled
    from .estimator.persistence import load, save
    from .harmonium.classifier import HarmoniumClassifier
    from .harmonium.estimator import Harmonium
    from .harmonium.regressor import HarmoniumRegressor
    from .rank_factor.classifier import RankFactorClassifier
    from .rank_factor.estimator import RankFactorAnalysis
    from .rectangle.estimator import RectangleMixture
    from .sparse_gp.classifier import SparseGPClassifier, SparseGPOrdinalClassifier
    from .sparse_gp.estimator import SparseGPRegressor
    from .sparse_gp.left_out import compare
    from .tggm.classifier import TGGMClassifier
    from .tggm.estimator import TGGMRegressor

    __version__: str

__all__ = [
    "AutoClassifier",
    "AutoImputer",
    "AutoRegressor",
    "Harmonium",
    "HarmoniumClassifier",
    "HarmoniumRegressor",
    "RankFactorAnalysis",
    "RankFactorClassifier",
    "RectangleMixture",
    "SparseGPClassifier",
    "SparseGPOrdinalClassifier",
    "SparseGPRegressor",
    "TGGMClassifier",
    "TGGMRegressor",
    "__version__",
    "cache_compiled",
    "compare",
    "load",
    "metrics",
    "save",
]

_HOMES = {
    "AutoClassifier": "nongauss.auto.classifier",
    "AutoImputer": "nongauss.auto.imputer",
    "AutoRegressor": "nongauss.auto.regressor",
    "Harmonium": "nongauss.harmonium.estimator",
    "HarmoniumClassifier": "nongauss.harmonium.classifier",
    "HarmoniumRegressor": "nongauss.harmonium.regressor",
    "RankFactorAnalysis": "nongauss.rank_factor.estimator",
    "RankFactorClassifier": "nongauss.rank_factor.classifier",
    "RectangleMixture": "nongauss.rectangle.estimator",
    "SparseGPClassifier": "nongauss.sparse_gp.classifier",
    "SparseGPOrdinalClassifier": "nongauss.sparse_gp.classifier",
    "SparseGPRegressor": "nongauss.sparse_gp.estimator",
    "TGGMClassifier": "nongauss.tggm.classifier",
    "TGGMRegressor": "nongauss.tggm.estimator",
    "cache_compiled": "nongauss.core.device",
    "compare": "nongauss.sparse_gp.left_out",
    "load": "nongauss.estimator.persistence",
    "save": "nongauss.estimator.persistence",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, and keep it."""
    if name == "__version__":
        value: Any = _installed_version()
    elif name == "metrics":
        from importlib import import_module

        value = import_module("nongauss.metrics")
    elif name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("nongauss")
    except PackageNotFoundError:
        return "0+unknown"
