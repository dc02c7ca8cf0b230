"""Draws of a filled matrix by gcimpute (Zhao and Udell, Journal of Statistical Software 108, 2024).

    PEER_PYTHON imputation_peer.py GAPS.npy OUT.npy N

Run by imputation.py in an environment with `pip install gcimpute`, which needs packages of its own. GAPS is a
matrix with NaN where missing, OUT the draws and the point (N + 1, rows, columns), the point last.
"""

import sys

import numpy as np
from gcimpute.gaussian_copula import GaussianCopula


def main() -> None:
    gaps, out, n_draws = sys.argv[1], sys.argv[2], int(sys.argv[3])
    matrix = np.load(gaps)
    model = GaussianCopula(random_state=0, max_iter=30)
    point = model.fit_transform(matrix)
    draws = model.sample_imputation(matrix, num=n_draws)
    np.save(out, np.concatenate([np.moveaxis(draws, 2, 0), point[None]]))


if __name__ == "__main__":
    main()
