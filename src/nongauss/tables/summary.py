"""Former place of what `learn` and `column` hold."""

from nongauss.tables.column import ColumnSummary as ColumnSummary
from nongauss.tables.learn import InputSummary as InputSummary
from nongauss.tables.learn import Summary as Summary
from nongauss.tables.learn import summarise as summarise
from nongauss.tables.source import weight_of as weight_of
