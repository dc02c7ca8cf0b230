"""Commands that a test runs in its own process leave JAX's settings as they are."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _compiled_functions_stay_where_they_are(monkeypatch):
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", folder)
