"""A fit to a table in parts: the rules are learned from a sample in memory, and judged on all rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nongauss.rectangle.columns import View
from nongauss.rectangle.fit import share_of
from nongauss.rectangle.params import Rows
from nongauss.rectangle.rules import Rules
from nongauss.rectangle.summary import Tally
from nongauss.rectangle.updates import State
from nongauss.tables.encoder import TableEncoder
from nongauss.tables.parquet import Part, n_rows_of
from nongauss.tables.summary import weight_of


class Views(NamedTuple):
    """How a table is read: its encoder, columns of rules and of structure, the estimator's name."""

    whole: TableEncoder
    rule: View
    look: View
    name: str


def tally_of(part: Part, views: Views, rules: Rules, state: State, kind: str) -> Tally | None:
    """The tally of a part's rows: what rules, soft boxes and structure, fixed by now, say of them."""
    if not n_rows_of(part.X):
        return None
    cells = views.rule.read(part.X, views.whole, views.name, warn=False)
    look = views.look.read(part.X, views.whole, views.name, warn=False)
    X, Y = views.rule.scaled(cells.numbers), views.look.scaled(look.numbers)
    rows = Rows(X, cells.labels, Y, look.labels, np.ones(len(X)))
    share = share_of(rows, state, kind)
    return Tally.of(rules.claims(rules.margins(cells)), share, weight_of(part))
