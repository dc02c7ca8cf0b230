"""What a user chooses: the frozen settings of one fit. `RectangleMixture.__init__` has the limits."""

from __future__ import annotations

from typing import Literal, NamedTuple

from nongauss.rectangle.params import ALPHA, BETA

StructureKind = Literal["student_t", "full", "diagonal", "shared"]
"""Distributions of the numeric structure columns within a cluster."""

LIKELIHOOD = "likelihood"
"""The kind of structure of the paper: Gaussians of maximum likelihood, their covariances without a prior."""

STEEPNESS = (5.0, 10.0, 20.0)
"""Slopes a of the soft bounds, from soft to hard, per standard deviation."""

CANDIDATES = 5
"""Starts that are looked at for each one that is begun with."""


class Stage(NamedTuple):
    """A part of the course: slope, most iterations, most rows, and how many times `n_init` starts stay."""

    slope: float
    n_iter: int
    most_rows: int
    kept: float


STAGES = (
    Stage(STEEPNESS[0], 3, 500, 2.0),
    Stage(STEEPNESS[0], 2, 1000, 1.0),
    Stage(STEEPNESS[0], 6, 1000, 0.4),
    Stage(STEEPNESS[1], 8, 2000, 0.2),
)
"""What the starts go through before those left are compared on all rows, at the steepest slope."""

COMPARED = 8
"""Most iterations of the starts left on all rows, before the best of them is brought to its end."""


PAPER_SLOPE = 10.0
"""Slope of the soft bounds in the paper's setting, from the start."""


class RectangleRecipe(NamedTuple):
    """How boxes and structure are fitted and rules printed: parameters by name, and the seed.

    `n_clusters` is 1 where their number is still to be chosen.
    """

    n_clusters: int
    structure: StructureKind
    n_init: int
    max_iter: int
    tol: float
    seed: int
    rule_precision: str | int | None = "auto"
    rule_tolerance: float = 0.01
    max_boxes: int = 1
    preset: str | None = None
    alpha: float = ALPHA
    beta: float = BETA
    slope: float | None = None

    @property
    def steepness(self) -> float:
        """The final slope of the soft bounds."""
        if self.slope is not None:
            return self.slope
        return PAPER_SLOPE if self.preset else STEEPNESS[-1]

    @property
    def kind(self) -> str:
        """The kind of structure that is fitted."""
        return LIKELIHOOD if self.preset else self.structure

    def slope_at(self, stage: Stage) -> float:
        """The slope of a stage: the same share of the final one whatever that is; all of it in the paper."""
        return self.steepness if self.preset else self.steepness * stage.slope / STEEPNESS[-1]
