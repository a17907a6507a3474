"""The README stays short, and every link in the documentation leads somewhere."""

import re
from pathlib import Path

from packaging.version import Version

from benchmarks.figures import FOREIGN
from orchestrator import __version__

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
"""Links in examples of plans are not ours."""


def anchors(page: Path) -> set[str]:
    """Returns what a page can be entered at: its headings as hosting platforms name them, and its own marks."""
    text = page.read_text(encoding="utf-8")
    headings = (re.sub(r"[^\w\- ]", "", line).strip().lower() for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {*(line.replace(" ", "-") for line in headings), *re.findall(r'id="([^"]+)"', text)}


def dead_links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]+`", "", FENCED.sub("", page.read_text(encoding="utf-8")))
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            found.append(f"{page.relative_to(ROOT)}: {link}")
    return found


def test_every_link_leads_somewhere() -> None:
    assert [link for page in PAGES for link in dead_links(page)] == []


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_the_changelog_has_short_entries_in_groups() -> None:
    """The newest version comes first, and what a user has to change stands apart."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = [Version(found) for found in re.findall(r"^## (\S+)", text, re.MULTILINE)]
    assert versions == sorted(versions, reverse=True)
    assert versions[0] == Version(__version__)
    assert {*re.findall(r"^### (.*)", text, re.MULTILINE)} <= {"Added", "Changed", "Fixed", "Gone", "Upgrade notes"}
    entries = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    assert [entry for entry in entries if len(entry.splitlines()) > 2 or max(map(len, entry.splitlines())) > 160] == []


def test_the_code_cites_only_what_is_here() -> None:
    """Comments may cite a section of decisions.md, and no paper that is not in the repository."""
    places = [path for package in ("orchestrator", "tests") for path in sorted((ROOT / package).rglob("*.py"))]
    texts = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in places if "corpus" not in path.parts
    }
    known = anchors(ROOT / "docs/development/decisions.md")
    cited = {name: re.findall(r"decisions\.md#([a-z-]+)", text) for name, text in texts.items()}
    assert {name: found for name, found in cited.items() if not known.issuperset(found)} == {}
    assert [name for name, text in texts.items() if FOREIGN.search(text)] == []


def test_the_readme_tells_the_measured_numbers_of_the_answer_reader() -> None:
    lines = (ROOT / "docs/answers.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| reader |"))
    head, _, ours, next_best = ([cell.strip() for cell in line.split("|")] for line in lines[start : start + 4])
    told = (ROOT / "README.md").read_text(encoding="utf-8")
    for row in (ours, next_best):
        assert f"{row[head.index('exact %')]} % exactly" in told
        assert f"{row[head.index('silent %')]} % become" in told
