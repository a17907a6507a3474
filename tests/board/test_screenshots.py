"""The pictures in the documentation are small; `--renew-screenshots` makes them anew."""

from pathlib import Path

import pytest

from tests.board.browser import OpenWindow, Scheme
from tests.board.screenshots import take
from tests.daemon_server import RealDaemon

pytestmark = pytest.mark.board
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "board"
SIZE = {"width": 1280, "height": 800}
PAGES = {
    "sprint": "/sprints/SP-001",
    "story": "/sprints/SP-001/stories/US-004",
    "gate": "/sprints/SP-001/stories/US-003/gate",
}
LARGEST = 100_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_picture_for_the_documentation_is_small(
    library: RealDaemon,
    window_at: OpenWindow,
    request: pytest.FixtureRequest,
    name: str,
    scheme: Scheme,
) -> None:
    page = window_at(library, size=SIZE, scheme=scheme).log_in().open(PAGES[name])
    page.wait_for_load_state("load")
    made, kept = take(page), FOLDER / f"{name}-{scheme}.webp"
    assert kept.exists()
    assert len(made) <= LARGEST
    if request.config.getoption("renew_screenshots", default=False):
        kept.write_bytes(made)
