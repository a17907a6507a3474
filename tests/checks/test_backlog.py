from orchestrator.checks.backlog import all_problems, check_backlog, refusal
from orchestrator.core.finding import Finding, minor
from orchestrator.core.story import BacklogContent, IdIndex, Story, parse_dependencies


def backlog(*rows: tuple[str, str], title: str = "t") -> tuple[Story, ...]:
    """Stories from (id, dependency cell), standing on lines 2, 3, …"""
    index = IdIndex(story_id for story_id, _ in rows)
    return tuple(
        Story(id=i, title=title, dependency_note=d, dependencies=parse_dependencies(d, index).ids, line=n)
        for n, (i, d) in enumerate(rows, 2)
    )


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, int | None]]:
    return [(f.code, f.severity.value, f.where.line) for f in findings]


def test_a_sound_backlog_has_no_findings() -> None:
    assert check_backlog(backlog(("A-1", "None (foundational)"), ("A-2", "A-1 (base)"), ("A-3", ""))) == ()


def test_ids_and_titles() -> None:
    findings = check_backlog((*backlog(("A 1", ""), ("A-2", ""), ("A-2", "")), Story(id="A-3", title=" ", line=9)))
    assert told(findings) == [
        ("backlog.bad_id", "critical", 2),
        ("backlog.duplicate_id", "critical", 4),
        ("backlog.missing_title", "major", 9),
    ]
    assert findings[1].message == "the id of A-2 (line 4) is taken by A-2 (line 3)"


def test_dependencies_on_itself_on_nobody_and_on_prose() -> None:
    rows = backlog(("US-001", "US-001"), ("US-002", "US-007, US-001"), ("US-003", "ISO-27001"), ("US-004", "TBD"))
    findings = check_backlog(rows, source="b.csv")
    assert told(findings) == [
        ("backlog.self_dependency", "critical", 2),
        ("backlog.unknown_dependency", "critical", 3),
        ("backlog.dependency_note", "minor", 4),
        ("backlog.dependency_note", "minor", 5),
    ]
    assert findings[1].message == "US-002 (line 3) depends on US-007, which is no row of the backlog"
    assert findings[1].fix.startswith("did you mean US-00")
    assert str(findings[1].where) == "b.csv:3 US-002 Dependencies"
    with_iso = check_backlog(backlog(("ISO-1", ""), ("US-003", "ISO-27001")))
    assert told(with_iso) == [("backlog.unknown_dependency", "critical", 3)]


def test_every_cycle_is_named_by_path_and_lines() -> None:
    rows = backlog(("A", "B"), ("B", "C"), ("C", "A"), ("D", "A"), ("X", "Y"), ("Y", "X"))
    findings = check_backlog(rows)
    assert told(findings) == [("backlog.cycle", "critical", 2), ("backlog.cycle", "critical", 6)]
    assert "A → B → C → A; A (line 2), B (line 3), C (line 4)" in findings[0].message
    assert "X → Y → X" in findings[1].message


def test_two_foundations() -> None:
    rows = tuple(story.model_copy(update={"foundation": True}) for story in backlog(("A", ""), ("B", "")))
    assert told(check_backlog(rows)) == [("backlog.foundation_twice", "minor", 3)]


def test_all_problems_and_the_refusal_list_what_blocks() -> None:
    read = minor("backlog.priority", "odd priority")
    content = BacklogContent(source="b.csv", stories=backlog(("A", "A"), ("A", "")), problems=(read,))
    problems = all_problems(content)
    assert problems[0] == read
    error = refusal("b.csv", problems)
    assert error.findings == problems
    assert error.message.splitlines() == [
        "b.csv cannot be run as it is:",
        "  A (line 2) depends on itself - take its own id out of Dependencies",
        "  the id of A (line 3) is taken by A (line 2) - give one of the two rows another id",
    ]
    many = check_backlog(backlog(*((f"E-{n}", f"E-{n}") for n in range(80))))
    assert refusal("b.csv", many).message.endswith("… and 30 more")
