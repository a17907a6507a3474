"""The documentation becomes a site whose pages are all reached, and whose links lead somewhere."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.docs


def test_the_site_is_built_from_every_page(tmp_path: Path) -> None:
    venv = Path(sys.executable).parent.parent
    built = subprocess.run(
        ["make", "-s", "docs", f"VENV={venv}", f"ARGS=-d {tmp_path}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout) == (0, ""), built.stderr[-2000:]
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    shown = {path.relative_to(tmp_path).with_suffix("") for path in tmp_path.rglob("*.html")}
    assert {Path("index") if page.name == "README" else page for page in pages} <= shown
