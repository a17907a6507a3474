"""Rule ↔ finding code ↔ prompt: what checks enforce is what personas were told (spec 1 E)."""

from orchestrator.domain.base import Value


class Rule(Value):
    """A finding's code, the prompt of the persona that causes it, and words that must stand in that prompt's file."""

    code: str
    prompt: str
    """Name in PROMPT_SLOTS."""
    phrase: str
    """Compared with blanks and line ends taken as one blank."""


def _told(phrase_of: dict[str, str], *prompts: str) -> tuple[Rule, ...]:
    return tuple(
        Rule(code=code, prompt=prompt, phrase=phrase) for prompt in prompts for code, phrase in phrase_of.items()
    )


_SHAPE = 'every field that the shape under "Answer shape" requires'
_EXAMPLE = "an answer with its text, names or paths is refused"
_PLAN = {
    "breakdown.prompt_example": _EXAMPLE,
    "breakdown.shape": _SHAPE,
    "breakdown.tasks": _SHAPE,
    "breakdown.filled": _SHAPE,
    "breakdown.packages": "by the name it is installed with, with a version",
    "breakdown.notes": _SHAPE,
    "breakdown.story_id": "`story_id` is the id of the story below, unchanged",
    "breakdown.conflict": "fill in all four texts of the conflict",
    "breakdown.conflict_overridden": "It counts as settled: do not report it again",
    "breakdown.command": "one shell command in one string",
    "breakdown.path_clash": "No two paths differ in case only",
    "breakdown.task_id": "unique and rising",
    "breakdown.no_work": "Each task has files or a command",
    "breakdown.dependency": "names only tasks of this story",
    "breakdown.cycle": "no cycle can arise",
    "breakdown.missing_tasks": "fewer tasks than `task_count` is incomplete",
    "breakdown.unsafe_path": "no `..`, no absolute path",
    "breakdown.abstract_path": "never abstractions",
    "breakdown.test_file": "No test files: the tester writes them",
    "breakdown.binary_file": "No binary files",
    "breakdown.too_many_files": "At most three files in a task",
    "breakdown.undeclared_package": "Declare packages",
    "breakdown.package_source": "never an address, a path or another package's name",
}
_BUILD = {
    "delivery.ids": "`story_id` and `task_id` are those of the task below, unchanged",
    "delivery.no_content": "`content` is a JSON string, the file's whole text",
    "delivery.empty": "No file is empty",
    "delivery.no_files": "Deliver at least one file",
    "delivery.missing_file": "every file of it that does not exist yet",
    "delivery.unsafe_path": "no `..`, no absolute path",
    "delivery.duplicate_path": "each path once",
    "delivery.placeholder": "No placeholders",
    "delivery.syntax": "The code compiles",
    "delivery.sql": "SQL, in files and in strings, is in the grammar of the project's database",
    "delivery.shrunk": "a file that loses its content is refused",
    "delivery.lost_export": "loses a function, class, export or route which the task does not name",
    "delivery.manifest_loss": "never loses a dependency or a script",
    "contract.file": "Deliver only the task's files",
    "contract.other_task": "Every other file is refused",
    "contract.test_file": "No test files: the tester writes them",
    "contract.test_settings": "test configuration, also where it stands in another file",
    "contract.dependency": "add nothing else to a manifest",
    "contract.import": "Import nothing else",
    "contract.source": "Packages come from the usual index",
    "contract.git_settings": "No settings that make git run or fetch something",
    "contract.clash": "Deliver only the task's files",
    "contract.unreadable": "is well-formed and never loses",
    "contract.deletion": "you cannot delete or rename files",
    "contract.link": "or make links",
    "contract.submodule": "submodules or executable files",
    "contract.mode": "submodules or executable files",
}
_SUITE = {
    "suite.story_id": "`story_id` is the id of the story below, unchanged",
    "suite.syntax": "It must compile",
    "suite.case": "Every entry of `test_cases` has a name",
    "suite.unknown_case": "names one test function exactly as it is written in the file",
    "suite.criteria": "One test per acceptance criterion where that is asked for",
    "suite.shape": "one JSON object and nothing else",
    "suite.file_name": "named test_*.py",
    "suite.older_test": "`test_file` is a new path",
    "suite.no_tests": "functions named test_*",
    "suite.no_assertion": "Every test function asserts something",
    "suite.always_true": "No assertion that is always true",
    "suite.network": "No network",
    "suite.sleep": "No sleep",
    "suite.prompt_example": _EXAMPLE,
    "suite.skipped": "No skipped or expected-to-fail tests, no todo and no only",
    "suite.always_fails": "it fails when the criterion is not met and only then",
    "suite.not_awaited": "Whatever is asynchronous is awaited",
    "suite.no_subject": "Import the code under test and call it, or start its program",
    "suite.own_copy": "never a copy of it in the test",
    "suite.mocked": "never the code under test itself",
    "suite.duplicate_test": "Each test function has a name of its own",
    "suite.database_import": "never import an open database at file level",
    "suite.database_open": "close the database",
    "suite.server_open": "close the server",
    "suite.undrained": "drain the response of every request",
}
_ANALYSIS = {
    "analysis.shape": "one JSON object and nothing else",
    "analysis.prompt_example": _EXAMPLE,
}

RULES: tuple[Rule, ...] = (
    *_told(_PLAN, "architect/breakdown", "architect/breakdown_missing"),
    *_told(_BUILD, "developer/delivery", "developer/continuation"),
    *_told(_SUITE, "tester/suite"),
    *_told(_ANALYSIS, "tester/analysis"),
)
"""Every code a check may raise against a persona's answer, with where the persona was told."""

OWN_CODES = frozenset(
    {
        "breakdown.renumbered",
        "breakdown.struck",
        "breakdown.dependency_dropped",
        "breakdown.cut_off",
        "delivery.cut_off",
        "delivery.unchecked",
        "analysis.outside_tasks",
        "contract.amendment",
        "contract.hash",
        "contract.crashed",
    }
)
"""Codes that tell what happened or what we changed: no persona breaks a rule by them."""
