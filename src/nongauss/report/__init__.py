"""What a person reads about a fit: text, figures, plots, comparison tables and the HTML report."""

from nongauss.report.baselines import baselines
from nongauss.report.comparison import compare
from nongauss.report.html import FrameInfo, learned_figures, report_figures, write_report
from nongauss.report.metrics import classification_metrics, pit_values, regression_metrics
from nongauss.report.plots.dependence import DependenceDisplay
from nongauss.report.plots.features import (
    ClassFeaturesDisplay,
    FeatureColumnsDisplay,
    feature_figures,
    feature_lines,
)
from nongauss.report.plots.labels import ReliabilityDisplay
from nongauss.report.plots.loadings import CoefficientDisplay, FactorNetworkDisplay, LoadingImageDisplay
from nongauss.report.plots.predictions import CalibrationDisplay, PredictiveDisplay, TraceDisplay
from nongauss.report.plots.relevance import RelevanceDisplay, relevance
from nongauss.report.plots.rules import ClusterProfileDisplay, ParallelRulesDisplay, RectangleDisplay
from nongauss.report.text import summary

__all__ = [
    "CalibrationDisplay",
    "ClassFeaturesDisplay",
    "ClusterProfileDisplay",
    "CoefficientDisplay",
    "DependenceDisplay",
    "FactorNetworkDisplay",
    "FeatureColumnsDisplay",
    "FrameInfo",
    "LoadingImageDisplay",
    "ParallelRulesDisplay",
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
