"""The pictures in the documentation show what the board is; see screenshots.py for what counts as alike."""

from pathlib import Path

import pytest

from tests.board.browser import OpenWindow, Scheme
from tests.board.screenshots import FEW, compare, take
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
def test_the_documentation_shows_the_board_as_it_is(
    library: RealDaemon,
    window_at: OpenWindow,
    request: pytest.FixtureRequest,
    name: str,
    scheme: Scheme,
    tmp_path: Path,
) -> None:
    page = window_at(library, size=SIZE, scheme=scheme).log_in().open(PAGES[name])
    page.wait_for_load_state("load")
    made, kept = take(page), FOLDER / f"{name}-{scheme}.webp"
    assert len(made) <= LARGEST
    if request.config.getoption("renew_screenshots", default=False):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(made)
    share = compare(page, made, kept.read_bytes())
    (tmp_path / kept.name).write_bytes(made)
    assert share <= FEW, (
        f"{share:.1%} of docs/board/{kept.name} looks otherwise than the page now ({tmp_path / kept.name}); where that "
        "is meant: make test-board ARGS='--renew-screenshots tests/board/test_screenshots.py'"
    )


def test_what_is_alike_and_what_is_not(library: RealDaemon, window_at: OpenWindow) -> None:
    window = window_at(library, size=SIZE).log_in()
    page = window.open(PAGES["sprint"])
    made = take(page)
    change = "([name, value]) => document.documentElement.style.setProperty(name, value)"
    for name, value in (("font-family", "serif"), ("font-family", "Liberation Sans, Arial"), ("line-height", "1.5")):
        window.open(PAGES["sprint"])
        page.evaluate(change, [name, value])
        assert compare(page, made, take(page)) <= FEW, f"another font rendering: {value}"
    for hidden in (".card.state-waiting", ".head"):
        window.open(PAGES["sprint"])
        page.evaluate("name => { document.querySelector(name).style.visibility = 'hidden'; }", hidden)
        assert compare(page, made, take(page)) > FEW, f"{hidden} is missing"
    window.open(PAGES["sprint"])
    page.evaluate(change, ["--panel", "#ffe0e0"])
    assert compare(page, made, take(page)) > FEW, "other colours"
