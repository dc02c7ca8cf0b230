"""Kernel matrices in blocks of rows: kept where they fit, made again on each pass where they do not.

So a pass over N rows takes O(N M^2) time and O(B M + M^2) memory, B rows in a block.
"""

from __future__ import annotations

from collections.abc import Iterator

from nongauss.sparse_gp.objective import Basis, basis, inducing
from nongauss.sparse_gp.params import Model, Params, Rows

BLOCK_NUMBERS = 2**20
"""Elements of K_zx in a block: what is made of it stays in the cache, and in memory that was used before."""

KEPT_NUMBERS = 25_000_000
"""Elements of K_zx, all kernels together, that are kept between passes (a fifth of a GiB)."""

PRODUCT_NUMBERS = 2**23
"""Elements up to which what a step makes of K_zx is kept for the gradient; two such are there at times."""


def row_slices(n_rows: int, n_inducing: int) -> list[slice]:
    """The rows cut into blocks."""
    height = max(1, BLOCK_NUMBERS // max(n_inducing, 1))
    return [slice(i, min(i + height, n_rows)) for i in range(0, n_rows, height)]


class Blocks:
    """Kernel matrices of a model at some parameters and rows; iterating gives (rows, one Basis a kernel)."""

    def __init__(self, model: Model, params: Params, rows: Rows) -> None:
        self.model, self.params, self.rows = model, params, rows
        self.inducing = [
            inducing(kernel, theta, model.space, params.Z)
            for kernel, theta in zip(model.kernels, params.thetas, strict=True)
        ]
        n_rows, n_inducing = len(rows.y), len(params.Z)
        self.kept = n_rows * n_inducing * model.n_leaves <= KEPT_NUMBERS
        few = n_rows * n_inducing * len(model.kernel_of) <= PRODUCT_NUMBERS
        self.keeps_products = self.kept and (few or model.likelihood.conjugate)  # whose one step is exact
        self.slices = row_slices(n_rows, n_inducing)
        self._known: list[list[Basis]] = []

    def __iter__(self) -> Iterator[tuple[slice, list[Basis]]]:
        if self.kept and not self._known:
            self._known = [self._made(part) for part in self.slices]
        for number, part in enumerate(self.slices):
            yield part, self._known[number] if self.kept else self._made(part)

    def _made(self, part: slice) -> list[Basis]:
        model, params = self.model, self.params
        return [
            basis(kernel, theta, model.space, params.Z, self.rows.X[part])
            for kernel, theta in zip(model.kernels, params.thetas, strict=True)
        ]
