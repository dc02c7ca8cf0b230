import subprocess
import sys

import pytest

import nongauss

HEAVY = ["jax", "sklearn", "pandas", "scipy", "numpy", "matplotlib"]


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, nongauss; print(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_every_public_name_is_there_and_listed():
    assert {"TGGMRegressor", "save", "load", "__version__"} <= set(nongauss.__all__) <= set(dir(nongauss))
    for name in nongauss.__all__:
        assert getattr(nongauss, name) is getattr(nongauss, name)
    assert isinstance(nongauss.__version__, str)


def test_other_names_are_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'TGGMRegresor'"):
        nongauss.TGGMRegresor  # noqa: B018
