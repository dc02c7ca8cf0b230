"""Loadings as images, where columns are pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nongauss.core.errors import InputError
from nongauss.report.metrics import FloatArray
from nongauss.report.plots.style import axes_or_new, figure_of, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LoadingImageDisplay:
    """Loadings as images, if the columns are the pixels of an image.

    Parameters
    ----------
    loadings : (D, K).
    shape : rows and columns of the image.
    place : (D,) pixel of each column; None: all of them, in order.
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, loadings: npt.ArrayLike, shape: tuple[int, int], place: npt.ArrayLike | None = None
    ) -> None:
        values = np.asarray(loadings, dtype=np.float64)
        at = np.arange(len(values)) if place is None else np.asarray(place, dtype=np.intp)
        if len(at) != len(values) or at.max(initial=0) >= shape[0] * shape[1]:
            raise InputError(
                f"{len(values)} columns do not fit an image of {shape[0]} x {shape[1]}; "
                "give the pixel of each by `place`."
            )
        self.images: FloatArray = np.zeros((values.shape[1], shape[0] * shape[1]))
        self.images[:, at] = values.T
        self.images = self.images.reshape(-1, *shape)

    @classmethod
    def from_estimator(
        cls, estimator: Any, shape: tuple[int, int], *, n_across: int = 5, ax: Axes | None = None
    ) -> LoadingImageDisplay:
        """Plot a fitted model with `loadings_` whose input columns are the pixels; ignored ones stay 0.

        Raises InputError for a model with columns that are not pixels, such as labels.
        """
        loadings = estimator.loadings_
        known = getattr(estimator, "feature_names_in_", None)
        names = [f"x{j}" for j in range(estimator.n_features_in_)] if known is None else list(known)
        place = {name: number for number, name in enumerate(names)}
        strange = [name for name in loadings.index if name not in place]
        if strange:
            raise InputError(
                f"An image needs numbers in each column, but {strange[0]!r} is no column of the table; "
                "give the loadings and `place` to the constructor."
            )
        return cls(loadings, shape, [place[name] for name in loadings.index]).plot(ax=ax, n_across=n_across)

    def plot(self, ax: Axes | None = None, n_across: int = 5) -> LoadingImageDisplay:
        """Draw all images on one `ax`, or on a new figure; red positive, blue negative, each on its scale."""
        ax = axes_or_new(ax)
        n_images, height, width = self.images.shape
        n_down = -(-n_images // n_across)
        sheet = np.full((n_down * (height + 1), n_across * (width + 1)), np.nan)
        for k, image in enumerate(self.images):
            top, left = k // n_across * (height + 1), k % n_across * (width + 1)
            sheet[top : top + height, left : left + width] = image / (np.abs(image).max() or 1.0)
        ax.imshow(sheet, cmap="RdBu_r", vmin=-1, vmax=1)
        finish(ax, "Loadings", "", "")
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self
