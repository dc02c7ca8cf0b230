"""Several modes: what if a row is either quick or slow, and the columns do not say which?

A mean between two modes is a value that never occurs. The automatic regressor detects two modes in the
residuals, and combines a process over the columns and the mode with a classifier of the mode.
"""

import matplotlib.pyplot as plt
import numpy as np

from nongauss import AutoRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0, 1, 260)
slow = rng.random(260) < 0.5
y = np.where(slow, 4.0, 1.0) + np.sin(4 * x) + 0.25 * rng.standard_normal(260)

model = AutoRegressor(candidates=["gp", "gp, two humps"], calibrate=False, random_state=0).fit(
    x[:160, None], y[:160]
)
print(model.why_)
print(model.leaderboard_[["candidate", "log_density", "weight"]].head(3).round(2).to_string(index=False))
print(f"log density of new rows: {model.log_density(x[160:, None], y[160:]).mean():.2f}")

heights = np.linspace(-0.5, 6.5, 200)
places = np.linspace(0, 1, 60)
law = model.predict_distribution(places[:, None])
density = np.exp([law.log_prob(np.full(60, height)) for height in heights])
plt.pcolormesh(places, heights, density, cmap="Blues", shading="nearest")
plt.scatter(x, y, s=5, color="0.2", linewidth=0)
plt.plot(places, law.mean, "--", color="C1")
plt.text(1.01, law.mean[-1], "mean", color="C1", va="center")
plt.gca().set(title="Density of the prediction, and the rows", xlabel="x")
plt.show()
