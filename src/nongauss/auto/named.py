"""Names of candidates for numbers as a person gives them: also of laws that stand on others."""

from __future__ import annotations

from collections.abc import Sequence

from nongauss.auto.base import FOREST, LOCAL, base_of
from nongauss.auto.candidate import Candidate
from nongauss.auto.candidates import REGISTRY, candidates_for
from nongauss.core.errors import InputError

_STANDING = (FOREST, f"...{LOCAL}")


def candidates_named(
    names: Sequence[str] | str, kind: str, n_rows: int, n_columns: int, *, calibrate: bool
) -> list[Candidate]:
    """The candidates for numbers of a kind; a local law or a forest by that on which it stands.

    Raises InputError for a name that is none, for such a law without `calibrate`, and for a local law on what
    has none.
    """
    if names == "auto":
        return candidates_for(kind, n_rows, n_columns)
    names = [names] if isinstance(names, str) else names
    local = [name for name in names if name.endswith(LOCAL)]
    standing = [name for name in names if name in (FOREST, *local)]
    if standing and not calibrate:
        raise InputError(f"The candidate {standing[0]!r} needs calibrate=True; give that, or leave it out.")
    able = [c.name for c in REGISTRY.values() if c.local and kind in c.kinds]
    for name in local:
        if base_of(name, kind) not in able:
            raise InputError(
                f"There is no candidate {name!r} for a target of kind {kind}; local laws stand on: "
                f"{', '.join(able)}."
            )
    bases = [base_of(name, kind) for name in names]
    return candidates_for(kind, n_rows, n_columns, bases, _STANDING if calibrate else ())
