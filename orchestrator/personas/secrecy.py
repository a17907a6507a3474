"""Secrets on their way to a model and back: masked in what it reads, put back in what it writes."""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.checks.paths import with_secrets
from orchestrator.core.delivery import Delivery, FileChange
from orchestrator.core.finding import Finding, Where, minor
from orchestrator.core.secrets import MASK, Found, Masks, masks_in, secrets_in
from orchestrator.core.story import Story
from orchestrator.core.suite import TestSuite
from orchestrator.prompts.budget import place_in

FIX = (
    "Revoke it, and keep it out of backlog and repository: programs read secrets from their environment. A value that "
    "is only a sample says so in itself (example, dummy)."
)


class Secrecy:
    """Hides secrets from one story's personas; reports each secret once, by its place.

    One that was known by its shape once is masked from then on wherever it stands, as in what a command prints.
    """

    def __init__(self, masks: Masks) -> None:
        self.masks = masks
        self._told: set[str] = set()

    def masked(self, slots: Mapping[str, str]) -> tuple[dict[str, str], list[Finding]]:
        """Returns the slots of a prompt without secrets, and a finding for each that was not told of before. Blocks."""
        plain: dict[str, str] = {}
        fresh: list[Finding] = []
        found = {slot: secrets_in(text) for slot, text in slots.items()}
        self.masks = self.masks.knowing(slots[slot][one.start : one.end] for slot in found for one in found[slot])
        for slot, text in slots.items():
            plain[slot] = self.masks.masked(text)
            for one in found[slot]:
                told = _finding(slot, text, one)
                if str(told.where) not in self._told:
                    self._told.add(str(told.where))
                    fresh.append(told)
        return plain, fresh


def _finding(slot: str, text: str, found: Found) -> Finding:
    """Returns which kind of secret, in which file and line; nothing of its value."""
    file, line = place_in(text, found.start)
    place = f"{file}, line {line}" if file else f"{slot.replace('_', ' ')}, line {line}"
    where = Where(file=file, line=line, field=None if file else slot)
    return minor("secret.masked", f"{found.kind} in {place}: masked in prompts", where=where, fix=FIX)


def row_findings(story: Story) -> list[Finding]:
    """Returns a finding on secrets that were masked in a story's row before anybody began with it."""
    if not masks_in(story.model_dump_json()):
        return []
    where = Where(story=story.id)
    return [minor("secret.masked", f"a secret in the row of {story.id}: masked in prompts", where=where, fix=FIX)]


class OwnFiles:
    """The files that one persona is asked for, with the secrets they hold or held in an earlier answer of its own."""

    def __init__(self, secrecy: Secrecy, more: Mapping[str, Iterable[str]] | None = None) -> None:
        """`more` are further texts of a file whose secrets it may hold."""
        self._secrecy = secrecy
        self._texts = {path: list(texts) for path, texts in (more or {}).items()}

    def delivery(
        self, delivery: Delivery | None, before: Mapping[str, str]
    ) -> tuple[Delivery | None, Sequence[Finding]]:
        """The delivery with its secrets; files that cannot have them are left out, None when nothing else is in it."""
        if delivery is None:
            return None, ()
        files, findings = self._restored([self._moved(one, delivery, before) for one in delivery.files], before)
        where = {"story": delivery.story_id, "task": delivery.task_id}
        told = [one.model_copy(update={"where": one.where.model_copy(update=where)}) for one in findings]
        whole = delivery.model_copy(update={"files": tuple(files)})
        return (whole if whole.files or whole.removed or whole.commands else None), told

    def _moved(self, change: FileChange, delivery: Delivery, before: Mapping[str, str]) -> FileChange:
        """Returns the file with its secrets when it only has another name now."""
        for path in delivery.removed:
            if MASK in change.content and self._secrecy.masks.masked(before.get(path, "")) == change.content:
                return change.model_copy(update={"content": before[path]})
        return change

    def suite(self, suite: TestSuite | None, before: Mapping[str, str]) -> tuple[TestSuite | None, Sequence[Finding]]:
        """Returns the suite with its secrets; None, with findings, when a file of it cannot have them."""
        if suite is None:
            return None, ()
        own = FileChange(path=suite.test_file, content=suite.test_content)
        files, findings = self._restored((own, *suite.changed), before)
        if findings:
            return None, findings
        return suite.model_copy(update={"test_content": files[0].content, "changed": tuple(files[1:])}), ()

    def _restored(
        self, files: Sequence[FileChange], before: Mapping[str, str]
    ) -> tuple[list[FileChange], list[Finding]]:
        known = {
            change.path: "\n".join([before.get(change.path, ""), *self._texts.get(change.path, ())]) for change in files
        }
        kept, findings = with_secrets(self._secrecy.masks, files, known)
        for change in kept:  # an answer that is sent back is shown to its author, masked like everything else
            texts = self._texts.setdefault(change.path, [])
            if change.content not in texts:
                texts.append(change.content)
        return kept, findings
