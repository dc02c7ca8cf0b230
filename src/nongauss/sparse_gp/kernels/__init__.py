"""The kernels there are: by name in `LEAVES`, and as an expression read from text by `parse`.

A new kernel is one class, of `Leaf`, and one place in `LEAVES`.
"""

from __future__ import annotations

import ast
from difflib import get_close_matches

from nongauss.core.errors import InputError
from nongauss.sparse_gp.kernels.base import FloatArray, Kernel, Product, Space, Sum
from nongauss.sparse_gp.kernels.leaf import PRIOR_SD, Leaf
from nongauss.sparse_gp.kernels.stationary import (
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
)
from nongauss.sparse_gp.kernels.structured import (
    NO_LABEL,
    Categorical,
    Constant,
    Cyclic,
    GroupEffect,
    Linear,
    Periodic,
    White,
)

__all__ = [
    "LEAVES",
    "NO_LABEL",
    "PRIOR_SD",
    "Categorical",
    "Constant",
    "Cyclic",
    "FloatArray",
    "GroupEffect",
    "Kernel",
    "Leaf",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Space",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "White",
    "parse",
]

_STATIONARY = (SquaredExponential, Matern12, Matern32, Matern52, RationalQuadratic)
_STRUCTURED = (Periodic, Cyclic, Linear, Categorical, GroupEffect, Constant, White)

LEAVES: dict[str, type[Leaf]] = {kind.name: kind for kind in (*_STATIONARY, *_STRUCTURED)}
"""Kernels that are no sums or products, by name."""


def parse(text: str) -> Kernel:
    """The kernel that a text describes: names, `+`, `*`, brackets, and columns as in `periodic(month)`.

    Columns are names, quoted where they are no Python names, or positions. Raises InputError.
    """
    try:
        return _built(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(
            f"The kernel {text!r} cannot be read{_because(error)}; write names with + and *, such as "
            f"'matern52 + linear'. There are: {', '.join(LEAVES)}."
        ) from error


def _because(error: Exception) -> str:
    return f" ({error})" if isinstance(error, InputError) else ""


def _built(node: ast.expr) -> Kernel:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _built(node.left) + _built(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _built(node.left) * _built(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _leaf(node.func.id)(tuple(_column(item) for item in node.args))
    if isinstance(node, ast.Name):
        return _leaf(node.id)()
    raise InputError(f"{ast.unparse(node)} is no kernel")


def _leaf(name: str) -> type[Leaf]:
    if name not in LEAVES:
        near = get_close_matches(name.casefold(), LEAVES, n=1, cutoff=0.5)
        raise InputError(f"there is no {name!r}" + (f", did you mean {near[0]!r}?" if near else ""))
    return LEAVES[name]


def _column(node: ast.expr) -> str | int:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int):
        return node.value
    raise InputError(f"{ast.unparse(node)} is no column")
