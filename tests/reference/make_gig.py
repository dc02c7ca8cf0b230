"""Writes gig.json: moments of the generalised inverse Gaussian to 50 digits, by mpmath.

python tests/reference/make_gig.py
"""

from __future__ import annotations

import json
from pathlib import Path

from mpmath import besselk, log, mp, mpf, sqrt

mp.dps = 50


def main() -> None:
    cases = []
    for p in ("-2.5", "-0.5", "-0.25", "0", "0.25", "0.5", "3"):
        for a in ("1e-8", "0.3", "1e4"):
            for b in ("1e-12", "1e-3", "2", "1e6"):
                P, A, B = mpf(p), mpf(a), mpf(b)
                w = sqrt(A * B)
                up, down = besselk(P + 1, w) / besselk(P, w), besselk(P - 1, w) / besselk(P, w)
                mass = log(2) + P / 2 * log(B / A) + log(besselk(P, w))
                numbers = (sqrt(B / A) * up, sqrt(A / B) * down, mass)
                cases.append([p, a, b, *(mp.nstr(number, 30) for number in numbers)])
    Path(__file__).with_name("gig.json").write_text(json.dumps(cases, indent=0) + "\n")


if __name__ == "__main__":
    main()
