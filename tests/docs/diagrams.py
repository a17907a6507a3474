"""Draws the diagrams of docs/concepts.md: `python -m tests.docs.diagrams`. Pages then load no program for them."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from orchestrator.settings import load
from tests.docs.blocks import ROOT

FOLDER = ROOT / "docs" / "diagrams"
STYLE = """\
  .page { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; text-anchor: middle }
  .head { font-weight: 600 } .soft { fill: #59636e; font-size: 12px }
  .model { fill: #ddf4ff; stroke: #54aeff } .ours { fill: #dafbe1; stroke: #4ac26b }
  .kept { fill: #fff8c5; stroke: #d4a72c } .person { fill: #fbefff; stroke: #c297ff }
  .around { fill: none; stroke: #8c959f; stroke-dasharray: 5 4 }
  .arrow { fill: none; stroke: #57606a; stroke-width: 1.4; marker-end: url(#tip) }
"""


class Box(NamedTuple):
    """A thing: its first line is its name."""

    x: int
    y: int
    width: int
    height: int
    kind: str
    """model | ours | kept | person | around"""
    lines: Sequence[str]


class Arrow(NamedTuple):
    """From one point to the next ones; with `bend` in a curve, below where it is positive."""

    points: Sequence[tuple[int, int]]
    label: str = ""
    at: tuple[int, int] | None = None
    """Where the label stands; else beside the middle of the first piece."""
    bend: int = 0


class Diagram(NamedTuple):
    """What stands on it, and what it shows in a sentence."""

    title: str
    size: tuple[int, int]
    parts: Sequence[Box | Arrow]


def _path_of_a_story() -> Diagram:
    settings = load(None, (), {})[0]
    names = [
        ("kept", "backlog", "a story"),
        ("model", "plan", "mike"),
        ("ours", "contract", "frozen"),
        ("model", "build", "alex, by task"),
        ("model", "review", "reviewer"),
        ("model", "suite", "jordan"),
        ("ours", "tests", "and proof"),
        ("ours", "merge", "whole suite"),
        ("kept", "result", "done"),
    ]
    left = {name: 16 + number * 104 for number, (_, name, _) in enumerate(names)}
    boxes = [Box(left[name], 100, 86, 52, kind, (name, below)) for kind, name, below in names]
    straight = [Arrow([(box.x + 86, 126), (box.x + 102, 126)]) for box in boxes[:-1]]

    def again(stage: str, words: str) -> Arrow:
        middle = left[stage] + 43
        return Arrow([(middle + 18, 100), (middle - 18, 100)], words, (middle, 44), -64)

    def back(stage: str, words: str, at: tuple[int, int], bend: int) -> Arrow:
        return Arrow([(left[stage] + 43, 152), (left["build"] + 61, 152)], words, at, bend)

    loops = [
        again("plan", f"not valid: at most {settings.plan.max_iterations} plans"),
        again("build", f"unreadable or refused: {settings.build.max_attempts} replies"),
        again("merge", "conflict or red: asked once"),
        back("review", f"not approved: {settings.review.max_iterations} reviews", (300, 188), 54),
        back("tests", f"red: {settings.test.max_attempts} runs", (536, 248), 112),
    ]
    words = "what the story may spend in calls, tokens and money ends every loop: budget.*_per_story"
    budget = Box(16, 270, 918, 26, "around", (words,))
    return Diagram("A story from backlog to merge", (950, 312), [*boxes, *straight, *loops, budget])


def _who_talks_with_whom() -> Diagram:
    boxes = [
        Box(290, 24, 220, 232, "ours", (
            "orchestrator", "reads and repairs answers", "checks them", "holds the contract",
            "runs commands and tests", "commits and merges",
        )),
        Box(20, 40, 110, 60, "model", ("mike", "architect")),
        Box(20, 180, 110, 60, "model", ("alex", "developer")),
        Box(670, 40, 110, 60, "model", ("reviewer", "reads changes")),
        Box(670, 180, 110, 60, "model", ("jordan", "tester")),
        Box(310, 312, 180, 52, "person", ("you", "in a terminal or browser")),
    ]  # fmt: skip
    said = [
        ((290, 58), (132, 58), "story, project, findings"), ((130, 84), (288, 84), "plan of tasks"),
        ((290, 198), (132, 198), "task, files, findings"), ((130, 224), (288, 224), "files"),
        ((510, 58), (668, 58), "the change"), ((670, 84), (512, 84), "verdict, comments"),
        ((510, 198), (668, 198), "criteria, code"), ((670, 224), (512, 224), "tests, causes of red"),
    ]  # fmt: skip
    arrows = [Arrow([start, end], words) for start, end, words in said]
    arrows += [Arrow([(380, 312), (380, 258)], "backlog, answers, orders", (296, 290))]
    arrows += [Arrow([(420, 256), (420, 310)], "questions, reports, commits", (512, 290))]
    return Diagram("Who talks with whom: personas never speak to each other", (800, 380), [*boxes, *arrows])


def _what_is_durable() -> Diagram:
    boxes = [
        Box(16, 40, 130, 60, "ours", ("prompt", "made from a step")),
        Box(196, 40, 110, 60, "model", ("model", "a paid call")),
        Box(356, 40, 130, 60, "kept", ("journal", "the reply, whole")),
        Box(536, 40, 130, 60, "kept", ("step", "its result")),
        Box(716, 40, 160, 60, "ours", ("checks", "the same again")),
        Box(716, 170, 160, 60, "kept", ("event log", "what happened, in order")),
        Box(356, 170, 130, 60, "ours", ("resume", "after a kill")),
        Box(536, 250, 130, 52, "ours", ("status, report", "read from events")),
    ]
    arrows = [Arrow([(x, 70), (x + 48, 70)]) for x in (146, 306, 486, 666)]
    arrows += [
        Arrow([(791, 100), (791, 168)]),
        Arrow([(421, 170), (421, 102)], "a reply is here: no second call", (320, 142)),
        Arrow(
            [(486, 185), (601, 185), (601, 102)], "a result is here: not done again", (594, 206),
        ),
        Arrow([(716, 220), (690, 220), (690, 276), (668, 276)]),
    ]  # fmt: skip
    return Diagram("What is on disk before the next thing happens", (892, 320), [*boxes, *arrows])


def _sandbox() -> Diagram:
    boxes = [
        Box(16, 16, 894, 270, "around", ("your machine",)),
        Box(40, 60, 200, 190, "ours", (
            "orchestrator", "keys, git, database", "writes accepted files",
            "chooses the strongest tier", "that passes its self-test",
        )),
        Box(350, 60, 240, 84, "around", ("tier: namespaces or landlock",)),
        Box(370, 88, 200, 46, "kept", ("commands and tests", "own folder only, no network")),
        Box(350, 166, 240, 84, "around", ("the same tier",)),
        Box(370, 194, 200, 46, "kept", ("fetching packages", "before project code runs")),
        Box(710, 194, 170, 46, "ours", ("proxy", "registries, named hosts")),
    ]  # fmt: skip
    arrows = [
        Arrow([(240, 111), (368, 111)], "time, memory,", (295, 100)),
        Arrow([(240, 217), (368, 217)], "fixed command", (295, 206)),
        Arrow([(570, 217), (708, 217)], "only way out", (650, 206)),
        Arrow([(880, 217), (938, 217)]),
    ]
    more = [
        Box(940, 194, 96, 46, "person", ("registries", "PyPI, npm …")),
        Box(253, 116, 84, 18, "text", ("disk, processes",)),
    ]
    return Diagram("Where commands of a model run", (1052, 302), [*boxes, *more, *arrows])


def _processes() -> Diagram:
    boxes = [
        Box(340, 60, 230, 236, "kept", (
            "state folder: .orchestrator/", "engine: steps of stories", "event log", "prompts and replies",
            "mirror of your repository", "a worktree per story", "reports",
        )),
        Box(40, 40, 170, 60, "ours", ("orchestrator run", "one sprint, in a terminal")),
        Box(40, 150, 170, 60, "ours", ("orchestrator serve", "many sprints, HTTP")),
        Box(40, 262, 170, 52, "person", ("browser, curl, submit", "with the token")),
        Box(700, 40, 206, 60, "ours", ("status, show, logs, board", "read")),
        Box(700, 150, 206, 60, "ours", ("pause, approve, reset …", "are recorded, then applied")),
        Box(700, 262, 206, 52, "kept", ("your repository", "--push-to, serve.push_to")),
    ]  # fmt: skip
    arrows = [
        Arrow([(210, 70), (338, 110)], "works in", (262, 74)),
        Arrow([(210, 180), (338, 180)], "works in", (272, 172)),
        Arrow([(125, 262), (125, 212)]),
        Arrow([(570, 110), (698, 70)]),
        Arrow([(700, 180), (572, 180)]),
        Arrow([(570, 270), (698, 288)], "the result", (630, 262)),
    ]
    return Diagram("Processes and the folder they share", (926, 330), [*boxes, *arrows])


DIAGRAMS = {
    "story": _path_of_a_story,
    "personas": _who_talks_with_whom,
    "durable": _what_is_durable,
    "sandbox": _sandbox,
    "processes": _processes,
}


def drawn(diagram: Diagram) -> str:
    """Returns the diagram as SVG."""
    width, height = diagram.size
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    tip = '<marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    body = [line for part in diagram.parts for line in (_box(part) if isinstance(part, Box) else _arrow(part))]
    return "\n".join(
        [
            head,
            f"<title>{escape(diagram.title)}</title>",
            f"<style>\n{STYLE}</style>",
            f'<defs>{tip}<path d="M0 0 L8 4 L0 8 z" fill="#57606a"/></marker></defs>',
            f'<rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6"/>',
            *body,
            "</svg>\n",
        ]
    )


def _box(box: Box) -> Iterator[str]:
    if box.kind != "text":
        place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
        yield f'<rect class="{box.kind}" {place} rx="5"/>'
    middle = box.x + box.width // 2
    first = box.y + (16 if box.kind == "around" else max(box.height - 18 * (len(box.lines) - 1), 8) // 2 + 4)
    for number, line in enumerate(box.lines):
        style = "soft" if number or box.kind in {"around", "text"} else "head"
        yield f'<text class="{style}" x="{middle}" y="{first + 18 * number}">{escape(line)}</text>'


def _arrow(arrow: Arrow) -> Iterator[str]:
    (x, y), *others = arrow.points
    if arrow.bend:
        ((end, _),) = others
        path = f"M{x} {y} C{x} {y + arrow.bend} {end} {y + arrow.bend} {end} {y + (2 if arrow.bend > 0 else -2)}"
    else:
        path = f"M{x} {y} " + " ".join(f"L{right} {down}" for right, down in others)
    yield f'<path class="arrow" d="{path}"/>'
    if arrow.label:
        right, down = arrow.at or ((x + others[0][0]) // 2, (y + others[0][1]) // 2 - 6)
        yield f'<text class="soft" x="{right}" y="{down}">{escape(arrow.label)}</text>'


def all_drawn() -> Mapping[str, str]:
    """Returns file name → SVG."""
    return {f"{name}.svg": drawn(make()) for name, make in DIAGRAMS.items()}


if __name__ == "__main__":
    for file, text in all_drawn().items():
        (FOLDER / file).write_text(text, encoding="utf-8")
