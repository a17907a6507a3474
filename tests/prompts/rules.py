"""Rule ↔ finding code ↔ prompt: what checks enforce is what personas were told."""

from orchestrator.core.value import Value


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


_DEVELOPER = ("developer/delivery", "developer/continuation", "developer/merge")
_DEVELOPER_WHOLE = ("developer/delivery_whole", "developer/continuation_whole", "developer/merge_whole")
_DEVELOPER_PLANS = ("developer/delivery_plan", "developer/continuation_plan", "developer/merge_plan")
_SHAPE = 'every field that the shape under "Answer shape" requires'
_PLAN = {
    "breakdown.shape": _SHAPE,
    "breakdown.tasks": _SHAPE,
    "breakdown.packages": "by the name it is installed with, with a version",
    "breakdown.notes": _SHAPE,
    "breakdown.story_id": "`story_id` is the story's id, unchanged",
    "breakdown.conflict": "fill in all four texts of the conflict",
    "breakdown.conflict_overridden": "counts as settled",
    "breakdown.command": "one shell command",
    "breakdown.path_clash": "No two paths differ in case only",
    "breakdown.task_id": "unique and rising",
    "breakdown.no_work": "Each task has files or a command",
    "breakdown.dependency": "names only tasks of this story",
    "breakdown.cycle": "no cycle can arise",
    "breakdown.missing_tasks": "fewer tasks than `task_count` is incomplete",
    "breakdown.unsafe_path": "no `..`, no absolute path",
    "breakdown.abstract_path": "never abstractions",
    "breakdown.test_file": "No test files: the tester writes them",
    "breakdown.ignored_file": "and nothing that git ignores",
    "breakdown.binary_file": "No binary files",
    "breakdown.too_many_files": "At most three files in a task",
    "breakdown.undeclared_package": "Declare packages",
    "breakdown.unavailable_package": "a name and a version of the usual index",
    "breakdown.package_source": "never an address, a path or another package's name",
}
_BUILD = {
    "delivery.empty": "No file is empty",
    "delivery.left_out": "Deliver only the task's files under exactly their paths",
    "delivery.no_files": "At least one file",
    "delivery.missing_file": "every file of it that does not exist yet",
    "delivery.ignored_file": "nor what git ignores",
    "delivery.lock_left": "Never write lock files",
    "delivery.unsafe_path": "no `..`, no absolute path",
    "delivery.duplicate_path": "each path once",
    "delivery.placeholder": "No placeholders",
    "delivery.syntax": "The code compiles",
    "delivery.shrunk": "a file that loses its content is refused",
    "delivery.lost_export": "loses a function, class or export which another file imports",
    "delivery.gone_import": "Import only what exists",
    "delivery.manifest_loss": "never loses a dependency or a script it has unasked",
    "delivery.masked_secret": "Copy such a name exactly as it stands, in its own file",
    "contract.masked_secret": "use it nowhere else",
    "contract.file": "Deliver only the task's files",
    "contract.other_task": "the architect is asked whether it may be",
    "contract.test_file": "No test files: the tester writes them",
    "contract.test_settings": "test configuration, also where it stands in another file",
    "contract.dependency": "Where you cannot do without another, use and declare it",
    "contract.import": "Where you cannot do without another, use and declare it",
    "contract.missing_module": "Import only what exists",
    "contract.source": "Packages come from the usual index",
    "contract.git_settings": "No settings that make git run or fetch something",
    "contract.clash": "Deliver only the task's files",
    "contract.unreadable": "is well-formed and never loses",
    "contract.deletion": "you cannot delete or rename files",
    "contract.link": "no links, submodules",
    "contract.submodule": "submodules, executables",
    "contract.mode": "submodules, executables",
}
_SUITE = {
    "delivery.masked_secret": "Copy such a name exactly as it stands, in its own file",
    "suite.syntax": "It must compile",
    "suite.criteria": "One test per acceptance criterion where that is asked for",
    "suite.file_name": "named test_*.py",
    "suite.older_test": "Else the test file has a new path",
    "suite.changed_test": "no other older test is touched",
    "suite.no_tests": "functions named test_*",
    "suite.duplicate_test": "Each test function has a name of its own",
}
_BUILD_JSON = {
    "delivery.ids": "`story_id` and `task_id` are those of your task, unchanged",
    "delivery.no_content": "`content` is a JSON string, the file's whole text",
}
_SUITE_JSON = {
    "suite.story_id": "`story_id` is the story's id, unchanged",
    "suite.case": "Every entry of `test_cases` has a name",
    "suite.unknown_case": "names one test function exactly as it is written in the file",
    "suite.shape": "one JSON object and nothing else",
}
_SUITE_PLAN = {
    "suite.case": "a bullet per test function, its name in backticks",
    "suite.unknown_case": "its name in backticks exactly as it is written in the file",
    "suite.shape": "The plan has exactly one action",
}


def _same(phrase: str, words: str) -> dict[str, str]:
    return {f"plan.{word}": phrase for word in words.split()}


_ACTION_PLAN = (
    _same("one action plan in Markdown and nothing else", "none prose wrapped too_many unreadable encoding")
    | _same("One line `# Title`", "titles no_title")
    | _same("`## Action Plan` with the actions", "section section_form outside no_actions")
    | _same("A fence is closed, and longer than any run of backticks", "fence_open fence_short")
    | _same("a heading `### ` with its verb in backticks", "verb heading_form mark_form")
    | _same("a line `---` between two actions", "separator")
    | _same("its bullets, each once, then its blocks", "field_twice stray")
    | _same("in exactly this form", "field_form field_unknown field_value value_form comment truncated")
    | _same("A path is given as `- **File Path:** [path](/path)`", "path path_form")
    | _same("has one block, the whole file", "block block_form block_indent incomplete")
)
_EDITS = {
    "plan.pairs": "pairs of headings `#### FIND:` and `#### REPLACE:`",
    "plan.empty_find": "copied from the file letter for letter",
    "plan.not_found": "copied from the file letter for letter",
    "plan.ambiguous": "must be found there exactly once",
    "plan.no_change": "It differs from its REPLACE block",
    "plan.exists": "`CREATE` is for files that do not exist",
    "plan.missing": "`EDIT` changes a file that is shown",
    "plan.unread": "`EDIT` changes a file that is shown",
    "plan.clash": "each path once",
    "plan.same_path": "each path once",
    "plan.resource": "`READ` with `- **Resource:** [path](/path)`",
    "plan.not_shown": "takes away what was shown",
    "plan.command": "`EXECUTE` runs the command in its `shell` block",
    "plan.cwd": "`- **cwd:**` for a folder below it",
}
_EXTRACT = {
    "extract.shape": _SHAPE,
    "extract.tasks": "as many as there are and in their order",
    "extract.goal": "copied word for word",
    "extract.files": "A path that does not stand in the plan letter for letter is refused",
    "extract.test_file": "Leave test files out",
    "extract.command": "as it is written there",
    "extract.depends": "numbers of tasks of this plan",
    "extract.packages": "by the names it gives them, with a version only where the plan has one",
}
_ANALYSIS = {"analysis.shape": "one JSON object and nothing else"}
_REVIEW = {
    "review.no_verdict": "The line `Ready:` stands at the left margin and holds one of its choices",
    "review.contradiction": "with a critical issue beside a Yes, nothing is approved",
    "review.fix_numbers": "`Ready: With fixes` with the numbers of the issues",
}

_MERGE = {
    "merge.marker": "no marker left in it",
    "merge.removed": "nothing is run, moved or taken away",
    "merge.command": "nothing is run, moved or taken away",
}

RULES: tuple[Rule, ...] = (
    *_told(_PLAN, "architect/breakdown", "architect/breakdown_missing"),
    *_told(_EXTRACT, "architect/plan_extract"),
    *_told(_BUILD, *_DEVELOPER, *_DEVELOPER_PLANS, *_DEVELOPER_WHOLE),
    *_told(_BUILD_JSON, *_DEVELOPER),
    *_told(_ACTION_PLAN, *_DEVELOPER_PLANS, "tester/suite_plan"),
    *_told(_EDITS, *_DEVELOPER_PLANS),
    *_told(_MERGE, "developer/merge", "developer/merge_plan"),
    *_told(_SUITE, "tester/suite", "tester/suite_plan", "tester/suite_whole"),
    *_told(_SUITE_JSON, "tester/suite"),
    *_told(_SUITE_PLAN, "tester/suite_plan"),
    *_told(_ANALYSIS, "tester/analysis"),
    *_told(_REVIEW, "reviewer/review"),
)
"""Every code a check may raise against a persona's answer, with where the persona was told."""

OWN_CODES = frozenset(
    {
        "breakdown.renumbered",
        # Caps that no story needs, and files that are no texts: only what reaches them is told.
        "breakdown.too_many_tasks",
        "breakdown.unwritable",
        "delivery.too_many_files",
        "delivery.unwritable",
        "plan.too_long",
        "breakdown.doubtful_conflict",
        "breakdown.struck",
        "breakdown.dependency_dropped",
        "breakdown.cut_off",
        "delivery.cut_off",
        "delivery.too_long",
        "delivery.reaches_runner",
        "delivery.unchecked",
        "analysis.outside_tasks",
        "contract.amendment",
        "contract.transitive",
        "contract.ci",
        "contract.startup_file",
        "contract.hidden_text",
        "delivery.hidden_text",
        "contract.crashed",
        "merge.conflict",
        "merge.red",
        "merge.vanished_tests",
        "merge.older_tests_unknown",
        "merge.unresolved",
        "merge.not_asked",
        "merge.tests_let_go",
        "plan.context_unknown",
        "plan.unchecked",
        "review.comment",
        "review.cut_off",
        "review.diff_cut",
        "review.not_approved",
        "review.unapproved",
    }
)
"""Codes that tell what happened or what we changed: no persona breaks a rule by them."""
