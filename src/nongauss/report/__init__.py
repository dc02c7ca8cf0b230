"""What a person reads about a fit: text, figures, plots, comparison tables and the HTML report."""

from nongauss.report.comparison import baselines, compare
from nongauss.report.displays import CalibrationDisplay, PredictiveDisplay, TraceDisplay
from nongauss.report.html import FrameInfo, report_figures, write_report
from nongauss.report.metrics import pit_values, regression_metrics
from nongauss.report.text import summary

__all__ = [
    "CalibrationDisplay",
    "FrameInfo",
    "PredictiveDisplay",
    "TraceDisplay",
    "baselines",
    "compare",
    "pit_values",
    "regression_metrics",
    "report_figures",
    "summary",
    "write_report",
]
