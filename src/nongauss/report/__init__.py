"""What a person reads about a fit: text, figures, plots, comparison tables and the HTML report.

Public names are imported on first use, so that what draws nothing loads no plotting library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nongauss.report.baselines import baselines
    from nongauss.report.comparison import compare
    from nongauss.report.html import FrameInfo, feature_lines, write_report
    from nongauss.report.metrics import classification_metrics, pit_values, regression_metrics
    from nongauss.report.pictures import Picture, feature_figures, learned_figures, report_figures
    from nongauss.report.plots.calibration import CalibrationDisplay
    from nongauss.report.plots.class_features import ClassFeaturesDisplay
    from nongauss.report.plots.cluster_profile import ClusterProfileDisplay
    from nongauss.report.plots.coefficients import CoefficientDisplay
    from nongauss.report.plots.dependence import DependenceDisplay
    from nongauss.report.plots.factor_network import FactorNetworkDisplay
    from nongauss.report.plots.feature_columns import FeatureColumnsDisplay
    from nongauss.report.plots.filled_cells import CellSpreadDisplay, FilledCellsDisplay
    from nongauss.report.plots.loading_images import LoadingImageDisplay
    from nongauss.report.plots.parallel_rules import ParallelRulesDisplay
    from nongauss.report.plots.predictive import PredictiveDisplay
    from nongauss.report.plots.rectangles import RectangleDisplay
    from nongauss.report.plots.relevance import RelevanceDisplay, relevance
    from nongauss.report.plots.reliability import ReliabilityDisplay
    from nongauss.report.plots.trace import TraceDisplay
    from nongauss.report.text import summary

__all__ = [
    "CalibrationDisplay",
    "CellSpreadDisplay",
    "ClassFeaturesDisplay",
    "ClusterProfileDisplay",
    "CoefficientDisplay",
    "DependenceDisplay",
    "FactorNetworkDisplay",
    "FeatureColumnsDisplay",
    "FilledCellsDisplay",
    "FrameInfo",
    "LoadingImageDisplay",
    "ParallelRulesDisplay",
    "Picture",
    "PredictiveDisplay",
    "RectangleDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "TraceDisplay",
    "baselines",
    "classification_metrics",
    "compare",
    "feature_figures",
    "feature_lines",
    "learned_figures",
    "pit_values",
    "regression_metrics",
    "relevance",
    "report_figures",
    "summary",
    "write_report",
]

_HOMES = {
    "CalibrationDisplay": "plots.calibration",
    "CellSpreadDisplay": "plots.filled_cells",
    "ClassFeaturesDisplay": "plots.class_features",
    "ClusterProfileDisplay": "plots.cluster_profile",
    "CoefficientDisplay": "plots.coefficients",
    "DependenceDisplay": "plots.dependence",
    "FactorNetworkDisplay": "plots.factor_network",
    "FeatureColumnsDisplay": "plots.feature_columns",
    "FilledCellsDisplay": "plots.filled_cells",
    "FrameInfo": "html",
    "LoadingImageDisplay": "plots.loading_images",
    "ParallelRulesDisplay": "plots.parallel_rules",
    "Picture": "pictures",
    "PredictiveDisplay": "plots.predictive",
    "RectangleDisplay": "plots.rectangles",
    "RelevanceDisplay": "plots.relevance",
    "ReliabilityDisplay": "plots.reliability",
    "TraceDisplay": "plots.trace",
    "baselines": "baselines",
    "classification_metrics": "metrics",
    "compare": "comparison",
    "feature_figures": "pictures",
    "feature_lines": "html",
    "learned_figures": "pictures",
    "pit_values": "metrics",
    "regression_metrics": "metrics",
    "relevance": "plots.relevance",
    "report_figures": "pictures",
    "summary": "text",
    "write_report": "html",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, and keep it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
