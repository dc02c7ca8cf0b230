"""How it moves: one EM iteration of all starts at once, which lowers the objective of none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from nongauss.rectangle.objective import (
    Cells,
    expected,
    log_box_prior,
    log_inside,
    log_joint,
    posterior,
)
from nongauss.rectangle.params import REACH, Boxes, BoxPrior, FloatArray, Rows, Structure
from nongauss.rectangle.structure import log_density, log_prior, update

BOX_STEPS = 12
"""L-BFGS iterations on the rectangles in each M-step; the next one goes on from there."""


class State(NamedTuple):
    """Where all starts are."""

    boxes: Boxes
    structure: Structure

    def start(self, s: int) -> State:
        """One of the starts, as S = 1."""
        return State(self.boxes.start(s), self.structure.start(s))


class Problem(NamedTuple):
    """What does not change from one iteration to the next."""

    rows: Rows
    at: Cells
    prior: BoxPrior
    kind: str


def iterate(problem: Problem, state: State) -> tuple[State, FloatArray]:
    """E-step and M-step; also the objective of each start where `state` is: (S,)."""
    rows = problem.rows
    log_G = log_inside(problem.at, state.boxes)
    log_p, pull = log_density(rows, state.structure, problem.kind)
    value = log_joint(log_G, log_p, rows.weight) + log_box_prior(state.boxes, problem.prior)[0].sum(axis=1)
    value += log_prior(state.structure, rows.Y_labels, problem.kind)
    share = posterior(log_G, log_p)
    structure = update(rows, share * rows.weight, pull, state.structure, problem.kind)
    return State(move_boxes(problem, state.boxes, share), structure), value


def move_boxes(problem: Problem, boxes: Boxes, share: FloatArray, steps: int = BOX_STEPS) -> Boxes:
    """M-step of the rectangles, eq. 7, by L-BFGS on all at once; one that lost keeps its place."""
    shape, D = boxes.flat().shape, boxes.lower.shape[-1]
    if not shape[-1]:
        return boxes
    before = expected(problem.at, boxes, share, problem.prior)[0]

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = expected(problem.at, Boxes.of(flat.reshape(shape), D), share, problem.prior)
        return -float(value.sum()), -gradient.ravel()

    bounds = np.tile([-REACH, REACH], (int(np.prod(shape)), 1))
    start = np.clip(boxes.flat(), -REACH, REACH).ravel()
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "maxcor": 10}
    )
    moved = Boxes.of(found.x.reshape(shape), D)
    gained = expected(problem.at, moved, share, problem.prior)[0] >= before
    return Boxes.of(np.where(gained[..., None], moved.flat(), boxes.flat()), D)
