"""What tests of encoders share."""

from nongauss.tables.learn import as_source, learn


def encoder_of(X, weight=None, estimator_name="this estimator"):
    """The encoder of a table in memory."""
    return learn(as_source(X, None, weight, estimator_name=estimator_name), estimator_name).encoder
