"""The gallery is what its examples do: each runs, prints what its page shows, and leaves no file behind."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest
from build_gallery import EXAMPLES, GALLERY, SECTIONS, index, page, run_example, shown_output
from executed import same_but_for_rounding

NAMES = [name for section in SECTIONS.values() for name in section]


def test_every_example_is_in_the_gallery_once() -> None:
    assert sorted(NAMES) == sorted(script.stem for script in EXAMPLES.glob("*.py"))
    assert sorted(path.stem for path in GALLERY.glob("*.png")) == sorted(NAMES)
    assert len(NAMES) >= 20


def test_index_of_the_gallery_is_up_to_date() -> None:
    assert (GALLERY / "index.md").read_text(encoding="utf-8") == index()


@pytest.mark.parametrize("name", NAMES)
def test_page_shows_the_code_of_its_example(name: str) -> None:
    script = EXAMPLES / f"{name}.py"
    assert (GALLERY / f"{name}.md").read_text(encoding="utf-8") == page(script, shown_output(script))


@pytest.mark.gate
@pytest.mark.filterwarnings("default::nongauss.core.errors.NongaussWarning")
@pytest.mark.parametrize("name", NAMES)
def test_example_prints_what_its_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = EXAMPLES / f"{name}.py"
    with mpl.rc_context():
        printed = run_example(script)
    assert same_but_for_rounding(shown_output(script), printed), printed
    assert list(tmp_path.iterdir()) == []
