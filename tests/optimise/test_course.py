from __future__ import annotations

import subprocess
import sys

import pytest

from nongauss.core.errors import InputError, NongaussWarning
from nongauss.optimise.course import Progress, Status


@pytest.mark.parametrize("status", Status)
def test_every_status_is_a_sentence_and_only_good_ends_are_success(status):
    assert status.value[0].isupper()
    assert status.value.endswith(".")
    assert status.converged == (status in {Status.CONVERGED, Status.EARLY_STOPPED, Status.COMPLETED})


def test_errors_and_warnings_are_of_the_classes_that_users_catch():
    assert issubclass(InputError, ValueError)
    assert issubclass(NongaussWarning, UserWarning)


def test_progress_is_frozen():
    with pytest.raises(AttributeError):
        Progress(1, 2, -3.0, 0.1).bound = 0.0


def test_importing_loads_no_jax():
    code = "import sys, nongauss.core.errors, nongauss.optimise.course; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
