"""Choice by evidence: which model should it be, and is any better than the mean?

The automatic regressor fits the models that suit the target, compares their predictions for left-out rows,
and averages the models that predict these best. The leaderboard lists all candidates.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from nongauss import AutoRegressor, metrics

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["age", "bmi", "bp", "s5"]]
names = ["constant", "linear", "gp gamma"]
model = AutoRegressor(candidates=names, calibrate=False, random_state=0).fit(X[:150], y[:150])
print(model.why_)
board = model.leaderboard_.dropna(subset=["log_density"])
print(board[["candidate", "log_density", "standard_error", "weight"]].round(3).to_string(index=False))
law = model.predict_distribution(X[150:])
print(f"new rows: log density {law.log_prob(y[150:]).mean():.2f}, CRPS {metrics.crps(y[150:], law):.1f}")

board = board[::-1]
plt.errorbar(board["log_density"], range(len(board)), xerr=board["standard_error"], fmt="o")
plt.yticks(range(len(board)), board["candidate"])
plt.gca().set(title="Predictive density of left-out rows", xlabel="log density, nats a row")
plt.show()
