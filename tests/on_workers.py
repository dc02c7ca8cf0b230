"""Functions of parts that worker processes can import: test modules they cannot."""

import os
import time

import numpy as np
import pandas as pd

from nongauss.core.errors import InputError


def made(part, factor):
    return factor * part


def gram(part, shift, seconds=0.0):
    time.sleep(seconds)
    return {"gram": (part - shift).T @ (part - shift), "n": len(part)}


def fails(part):
    raise InputError(f"a part of {len(part)} rows is no good; mend it")


def shard(number):
    """Rows of a store, which has none of a number below 0."""
    if number < -1:
        raise MemoryError(f"no room for shard {number}")
    if number < 0:
        raise OSError(f"the store has no shard {number}.")
    a = np.linspace(-1.0, 1.0, 40) + number
    return pd.DataFrame({"a": a, "real": np.sin(a)})


def too_slow(part):
    raise TimeoutError("the store did not answer")


class Sent(float):
    """A number that counts how often it is written to be sent."""

    times = 0

    def __reduce__(self):
        Sent.times += 1
        return Sent, (float(self),)


def process(model, X, y):
    """A score that tells where it was computed."""
    return os.getpid()
