"""Former place of what `frame` and `column` hold."""

from nongauss.tables.column import listed as listed
from nongauss.tables.frame import check_width as check_width
from nongauss.tables.frame import match_columns as match_columns
