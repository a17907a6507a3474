"""A Chromium of this machine, and windows of it that notice what no page of ours may do."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

NAMES = ("chromium", "chromium-headless-shell", "google-chrome")
"""Of programs that can be driven, the first one that is there."""
PHONE, DESK = {"width": 360, "height": 780}, {"width": 1440, "height": 900}
"""Sizes of a window."""
WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
"""The rules of axe that are laws for us; its advice on good practice is none."""
WAITS_MS = 15_000
"""Milliseconds that a busy machine has to show what it should."""
expect.set_options(timeout=WAITS_MS)
Scheme = Literal["light", "dark"]


def find_chromium() -> str | None:
    """Returns the program: what the variable CHROMIUM names, else one of PATH; None where there is none."""
    named = os.environ.get("CHROMIUM")
    return next((path for name in ((named,) if named else NAMES) if (path := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts one; it ends with the block."""
    path = find_chromium()
    assert path is not None, "no Chromium is here"
    with sync_playwright() as driver, driver.chromium.launch(executable_path=path) as browser:
        yield browser


@dataclass
class Window:
    """A page in a context of its own: no cookie, cache or storage of another test. Its faults fail the test."""

    page: Page
    url: str
    """Where its paths are."""
    token: str = ""
    """With which it can log in."""
    faults: list[str] = field(default_factory=list)
    """Errors of scripts and of the console, which tells violations of the policy too, and requests to others."""
    allowed: list[str] = field(default_factory=list)
    """Texts of errors that the test provokes."""

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("request", self._request)
        self.page.on("dialog", self._dialog)
        self.page.set_default_timeout(WAITS_MS)

    def open(self, path: str) -> Page:
        """Goes to a path of the daemon."""
        self.page.goto(f"{self.url}{path}")
        return self.page

    def log_in(self) -> "Window":
        """Gets the cookie, without a page."""
        given = {"token": self.token}
        answer = self.page.request.post(f"{self.url}/login", form=given, headers={"origin": self.url}, max_redirects=0)
        assert answer.status == 303, answer.text()
        return self

    def fault(self) -> str:
        """Returns what went wrong that the test did not allow; "" for nothing."""
        return "\n".join(one for one in self.faults if not any(text in one for text in self.allowed))

    def overflow(self) -> list[str]:
        """Returns the elements that make the page wider than its window; what scrolls by itself does not."""
        found: list[str] = self.page.evaluate(
            """() => {
                const width = document.documentElement.clientWidth;
                if (document.documentElement.scrollWidth <= width) return [];
                const isVisible = one => getComputedStyle(one).overflowX == 'visible';
                const scrolls = one => one != document.body && (!isVisible(one) || scrolls(one.parentElement));
                const spills = one => one.scrollWidth > one.clientWidth && isVisible(one);
                return [...document.querySelectorAll('body, body *')]
                    .filter(one => one.getBoundingClientRect().right > width + 1 || spills(one))
                    .filter(one => one == document.body || !scrolls(one.parentElement))
                    .map(one => `<${one.tagName.toLowerCase()} class="${one.className}" id="${one.id}">`)
                    .slice(0, 5);
            }"""
        )
        return found

    def paths(self) -> list[str]:
        """Returns to which other pages of the board its links lead."""
        found: list[str] = self.page.eval_on_selector_all(
            "a[href]",
            "links => links.filter(one => one.origin == location.origin).map(one => one.pathname + one.search)",
        )
        pages = [path for path in dict.fromkeys(found) if not path.startswith(("/api/", "/static/"))]
        return [path for path in pages if not path.partition("?")[0].endswith(".txt")]

    def unfold(self) -> None:
        """Opens what is folded."""
        self.page.eval_on_selector_all("details", "all => all.forEach((one) => { one.open = true; })")

    def look(self, size: dict[str, int], scheme: Scheme) -> None:
        """Shows the same page in another size and colour scheme."""
        self.page.set_viewport_size(size)  # type: ignore[arg-type]
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")

    def violations(self) -> list[str]:
        """Returns what axe finds on the page as it is: rule, element, and what is wrong."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(f"{axe_source()}; 0")
        found: dict[str, Any] = self.page.evaluate(
            "rules => axe.run({runOnly: rules, resultTypes: ['violations']})", list(WCAG)
        )
        return [
            f"{one['id']}: {node['html'][:200]}: {node['failureSummary']}"
            for one in found["violations"]
            for node in one["nodes"]
        ]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob", "about"} and address.netloc != urlsplit(self.url).netloc:
            self.faults.append(f"request to another host: {request.url}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


def kind_of(path: str) -> str:
    """Returns a path without the names of sprint, story and call, and without its query."""
    return re.sub(r"(?<=/)[^/]*\d[^/]*", "N", path.partition("?")[0])


def crawl(window: Window, *begin: str, most: int = 1, kind: Callable[[str], str] = kind_of) -> Iterator[str]:
    """Opens pages and every page that links lead to, of each kind `most` at most; yields the path of each."""
    left, known, kinds = [*begin], set(begin), Counter[str]()
    while left:
        path = left.pop(0)
        window.open(path)
        found = [one for one in window.paths() if one not in known]
        known.update(found)
        yield path
        for one in found:
            kinds[kind(one)] += 1
            if kinds[kind(one)] <= most:
                left.append(one)


OpenWindow = Callable[..., Window]


@contextmanager
def open_window(
    browser: Browser,
    url: str,
    token: str = "",
    *,
    size: dict[str, int] = DESK,
    scheme: Scheme = "light",
    **options: Any,
) -> Iterator[Window]:
    """A window; nothing is asserted here."""
    context = browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        **options,
    )
    try:
        yield Window(context.new_page(), url, token)
    finally:
        context.close()


def axe_source() -> str:
    """Returns axe-core as the package axe-playwright-python has it."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")
