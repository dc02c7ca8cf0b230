"""How every command behaves."""

from __future__ import annotations

import pytest

from nongauss.cli.conduct import check_outputs
from nongauss.core.errors import InputError


def test_outputs_are_checked_before_any_work(tmp_path):
    there, new = tmp_path / "there", tmp_path / "new"
    there.write_text("x")
    check_outputs({"--out": new})
    check_outputs({"--out": there}, force=True)
    for outputs, inputs, force, message in (
        ({"--out": there}, [], False, "--force"),
        ({"--out": there}, [there], True, "write over the input"),
        ({"--out": tmp_path}, [], True, "is a folder"),
        ({"--save": new, "--report": tmp_path / "." / "new"}, [], True, "same file"),
        ({"--save": there / "deeper" / "model"}, [], True, "no folder"),
    ):
        with pytest.raises(InputError, match=message):
            check_outputs(outputs, inputs, force=force)
    assert there.read_text() == "x"
