"""The action plan: code delivery as Markdown, once it is read, and what became of its actions.

Paths and resources are text here: whether they are safe, exist and may be touched is the checks' question, so that an
unsafe one becomes a finding and no exception.
"""

import shlex
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from orchestrator.core.value import Value


class Verb(StrEnum):
    """What an action does."""

    CREATE = "CREATE"
    EDIT = "EDIT"
    READ = "READ"
    PRUNE = "PRUNE"
    EXECUTE = "EXECUTE"
    DELETE = "DELETE"
    MOVE = "MOVE"


def with_lf(text: str) -> str:
    """Returns the text with every line end as LF, as Markdown reads it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def as_block(text: str) -> str:
    """Returns the text as a code block holds it: lines that all end with LF, or nothing at all.

    A block cannot say that its last line has no line end, nor that line ends are CRLF.
    """
    text = with_lf(text)
    return text if not text or text.endswith("\n") else f"{text}\n"


BlockText = Annotated[str, AfterValidator(as_block)]
"""Whole lines; see `as_block`."""
Command = Annotated[str, AfterValidator(lambda text: with_lf(text).rstrip("\n"))]
"""A command of one or more lines, without the last line end."""
Words = Annotated[str, AfterValidator(lambda text: " ".join(text.split()))]
"""One line of Markdown, blanks made one."""
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# A line break or NUL would end the `export` line that sets it.
VariableValue = Annotated[str, Field(pattern=r"^[^\r\n\x00]*$")]


class _Action(Value):
    """What all actions share."""

    line: int = 0
    """1-based line of the heading in the text that was read; 0 for an action that was read from none."""
    description: Words = ""
    """As it was written, Markdown and all."""

    @property
    def subject(self) -> str:
        """What the action is about, for people."""
        return str(getattr(self, "path", "") or getattr(self, "resource", ""))


class Create(_Action):
    """Write a whole file."""

    verb: Literal[Verb.CREATE] = Verb.CREATE
    path: str
    content: BlockText
    overwrite: bool = False
    """Whether the file may be there already; then it keeps its line ends and byte order mark."""


class Pair(Value):
    """Lines to be found, and the lines that take their place."""

    find: BlockText
    replace: BlockText
    line: int = 0
    """1-based line where FIND begins."""


class Edit(_Action):
    """Change parts of a file, one pair after the other."""

    verb: Literal[Verb.EDIT] = Verb.EDIT
    path: str
    pairs: tuple[Pair, ...]


class Read(_Action):
    """Ask for a file or a page to be shown in the next turn."""

    verb: Literal[Verb.READ] = Verb.READ
    resource: str
    lines: str = ""
    """Those of them that are asked for, as they stand behind a path (`#L10-L20`)."""


class Prune(_Action):
    """Take a resource out of what is shown."""

    verb: Literal[Verb.PRUNE] = Verb.PRUNE
    resource: str


class Execute(_Action):
    """Run a command once the files are written."""

    verb: Literal[Verb.EXECUTE] = Verb.EXECUTE
    command: Command
    cwd: str = "."
    """Below the root."""
    env: dict[VariableName, VariableValue] = Field(default_factory=dict)
    expected_outcome: Words = ""
    timeout_s: float | None = Field(default=None, gt=0)
    """None: the configured limit."""
    allow_failure: bool = False
    """Whether what comes behind goes on when the command fails."""

    @property
    def subject(self) -> str:
        """What the action is about, for people."""
        first, *more = self.command.strip().split("\n")
        return f"{first} …" if more else first

    @property
    def exports(self) -> tuple[str, ...]:
        """Its variables as lines of a shell, to stand before the command."""
        return tuple(f"export {name}={shlex.quote(value)}" for name, value in self.env.items())


class Delete(_Action):
    """Take a file away."""

    verb: Literal[Verb.DELETE] = Verb.DELETE
    path: str


class Move(_Action):
    """Give a file another path."""

    verb: Literal[Verb.MOVE] = Verb.MOVE
    path: str
    target: str

    @property
    def subject(self) -> str:
        """What the action is about, for people."""
        return f"{self.path} → {self.target}"


Action = Annotated[Create | Edit | Read | Prune | Execute | Delete | Move, Field(discriminator="verb")]


class ActionPlan(Value):
    """One plan: what is to be done, and why."""

    title: Words
    metadata: dict[str, Words] = Field(default_factory=dict)
    """Bullets under the title, e.g. Status."""
    rationale: str
    """Markdown."""
    lists: dict[str, tuple[Words, ...]] = Field(default_factory=dict)
    """Heading of another section, in lower case → the items of its list."""
    actions: tuple[Action, ...]
    """In their order. None at all only in what is left of a plan that was cut off in its first action."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Resources that are asked for."""
        return tuple(action.resource for action in self.actions if isinstance(action, Read))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The same with the lines that are asked for."""
        return tuple(action.resource + action.lines for action in self.actions if isinstance(action, Read))

    @property
    def prunes(self) -> tuple[str, ...]:
        """Resources that are to be left out from now on."""
        return tuple(action.resource for action in self.actions if isinstance(action, Prune))

    @property
    def commands(self) -> tuple[Execute, ...]:
        """What is to be run once the files are written."""
        return tuple(action for action in self.actions if isinstance(action, Execute))


URL_STARTS = ("http://", "https://")


def is_url(resource: str) -> bool:
    """Returns whether a resource is a page and no file."""
    return resource.lower().startswith(URL_STARTS)


class ActionState(StrEnum):
    """How one action ended."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class ActionResult(Value):
    """One action of a plan."""

    number: int
    """1-based."""
    verb: Verb
    subject: str
    """Path, resource or first line of the command."""
    line: int = 0
    """Of its heading in the plan."""
    state: ActionState
    reason: str = ""
    """Why it was skipped, or how it failed; of a chain of commands, which one."""
    output: str = ""
    """What a command printed."""


class ExecutionReport(Value):
    """All actions of a plan in their order."""

    title: str
    actions: tuple[ActionResult, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(action.state is not ActionState.FAILED for action in self.actions)
