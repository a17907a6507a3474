"""Which files a request shows whole, and what its persona asks to be shown besides: one mechanism for all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from orchestrator.answers.paths import split_lines
from orchestrator.core.action_plan import is_url
from orchestrator.core.ports import Look
from orchestrator.prompts import context
from orchestrator.prompts.budget import CHARS_PER_TOKEN, cap_middle, fence, language_of, tokens

_MARKS = 32
"""Tokens of the words about what is left out."""
_AROUND = 20
"""Lines that are shown before and after a single one."""


class Shown:
    """The texts that the prompts of one answer show: the request's own, and what was asked for with READ, without what
    was PRUNEd."""

    def __init__(
        self,
        texts: Mapping[str, str],
        look: Look,
        room_tokens: int,
        *,
        looks: int,
        in_part: bool = True,
        parts_of: Callable[[str, str], str] = lambda _path, _text: "",
    ) -> None:
        """`texts` stand in the prompt anyway. `looks` replies that only ask to be shown something cost no attempt.

        With `in_part` a file for which there is no room is shown as `parts_of` chooses, or where that says nothing with
        its middle left out, and otherwise not at all.
        """
        self._texts, self._look, self._room, self._in_part = dict(texts), look, room_tokens, in_part
        self._parts_of = parts_of
        self._asked: dict[str, str] = {}
        self._cut: dict[str, int] = {}
        """Path of a file that is not shown whole → how many of its characters were, from the beginning."""
        self._lines: dict[str, str] = {}
        """Address of lines of a long file → these lines, as they are shown."""
        self._notes: list[str] = []
        self._looks = looks
        self.looks_left = looks
        """Looks that still cost no attempt."""

    @property
    def slots(self) -> dict[str, str]:
        """Returns the prompt's slots that hold what is shown."""
        parts = {path: text for path, text in self._asked.items() if self._cut.get(path) == 0}
        asked = [context.render_files(self._asked | self._lines, self._room, parts | self._lines), *self._notes]
        return {"shown_files": "\n\n".join(part for part in asked if part)}

    @property
    def in_full(self) -> set[str]:
        """Returns the paths of the files that stand in the prompt from their first line to their last."""
        return {*self._texts, *self._asked} - {*self._cut}

    @property
    def asked(self) -> tuple[str, ...]:
        """Returns the paths of what is shown because it was asked for."""
        return (*self._asked, *self._lines)

    def renew_looks(self) -> None:
        """Allows as many looks as at the beginning; what was asked for stays."""
        self.looks_left, self._notes = self._looks, []

    async def free_look(self, reads: Sequence[str], prunes: Iterable[str]) -> tuple[str, ...]:
        """Does the same as `show` for a reply that asks for nothing else, as one of the looks."""
        self.looks_left -= 1
        shown = await self.show(reads, prunes)
        if not self.looks_left:
            self._notes.append("No further look is free of charge: answer now, with what you have.")
        return shown

    async def show(self, reads: Sequence[str], prunes: Iterable[str]) -> tuple[str, ...]:
        """Takes away what is pruned and shows what is asked for; returns the paths that are shown now and were not.

        Of a long file of which lines are asked for (`a.py#L10-L20`) these are shown.
        """
        for path in prunes:
            for shown in (self._asked, self._texts, self._lines):
                shown.pop(path, None)
            self._lines = {one: text for one, text in self._lines.items() if split_lines(one)[0] != path}
        there = self.in_full
        reads, parts = await self._with_lines([*dict.fromkeys(reads)], there)
        for path in self._cut.keys() & {*reads}:  # its next part takes the place of what is shown
            self._asked.pop(path, None)
        wanted = [one for one in dict.fromkeys(reads) if one not in there]
        files = [one for one in wanted if not is_url(one)]
        found = await self._look(files) if files else {}
        again = [f"`{one}` is shown in full already." for one in dict.fromkeys(reads) if one in there]
        # What is wanted most is named first: a changelog named last takes no room from the sources. Short files have it
        # anyway; where nothing is shown in part, the longest is what has none.
        least = {one: self._least(one, found.get(one) or "") for one in wanted}
        size = {one: tokens(found.get(one) or "") for one in wanted}
        order = sorted(wanted, key=lambda one: size[one] > self._room // 16 if self._in_part else size[one])
        notes = list(again)
        for at, one in enumerate(order):
            notes.append(self._put(one, found.get(one), least[one], sum(least[other] for other in order[at + 1 :])))
        notes += [self._put_lines(address, text) for address, text in parts.items()]
        self._notes = [note for note in notes if note]
        return (*(one for one in wanted if one in self._asked), *(one for one in parts if one in self._lines))

    async def _with_lines(self, reads: Sequence[str], there: set[str]) -> tuple[Sequence[str], Mapping[str, str]]:
        """Returns what is to be shown from its beginning, and address → whole text of the files to show lines of."""
        paths = {one: path for one in reads if not is_url(one) for path, lines in [split_lines(one)] if lines}
        texts = await self._look([*{path for path in paths.values() if path not in there}]) if paths else {}
        parts = {one: texts[path] for one, path in paths.items() if tokens(texts.get(path) or "") > self._room // 16}
        return [paths.get(one, one) for one in reads if one not in parts], parts

    def _put_lines(self, address: str, text: str) -> str:
        """Shows the lines of a text that an address names; returns why they are not shown, or ""."""
        (path, lines), there = split_lines(address), text.removesuffix("\n").split("\n")
        if lines is None or lines.start > len(there):
            return f"`{address}` is not shown: the file has {len(there)} lines."
        around = range(lines.start - _AROUND, lines.stop + _AROUND) if len(lines) == 1 else lines
        first, last = max(around.start, 1), min(around.stop - 1, len(there))
        shown = fence("\n".join(there[first - 1 : last]), language_of(path))
        told = f"Lines {first} to {last} of {len(there)}:\n\n{shown}"
        if tokens(told) > self._free:
            return (
                f"`{address}` is not shown: no room is left; ask for fewer lines, or take one away with `PRUNE path`."
            )
        self._lines[address] = told
        return ""

    @property
    def _free(self) -> int:
        """Tokens that are left for what is asked for."""
        return self._room // 2 - sum(map(tokens, (*self._asked.values(), *self._lines.values())))

    def _least(self, resource: str, text: str) -> int:
        """Returns the tokens that a text needs at least: those of its parts where it is long and may be shown so."""
        whole, short = tokens(text), self._room // 16
        if not self._in_part or whole <= short:
            return whole
        parts = self._parts_of(resource, text) if resource not in self._cut else ""
        return min(whole, (tokens(parts) or short) + _MARKS)

    def _put(self, resource: str, text: str | None, least: int, kept: int) -> str:
        """Shows one text, and keeps room for those behind it; returns why it is not shown, or ""."""
        if is_url(resource):
            return f"`{resource}` is not shown: pages are not fetched here."
        if text is None:
            return f"`{resource}` is not shown: it is no text file of the repository."
        free = self._free
        left = free if tokens(text) <= free or not self._in_part else max(free - kept, min(free, least))
        if tokens(text) > left:
            if not self._in_part and tokens(text) > self._room // 2:
                told = "is not shown: it is too long to be shown whole, whatever is pruned"
                return f"`{resource}` {told}; `READ {resource}#L1-L200` shows lines of it."
            if not self._in_part or left < self._room // 16:
                return f"`{resource}` is not shown: no room is left; a line `PRUNE path` takes one away."
            parts = self._parts_of(resource, text) if resource not in self._cut else ""
            if parts and tokens(parts) <= left:
                self._asked[resource], self._cut[resource] = parts, 0  # asked for again, it is shown from its beginning
            else:
                self._asked[resource] = self._part(resource, text, left * CHARS_PER_TOKEN)
            more = self._cut[resource] < len(text)
            return f"`{resource}` has no room whole: asked for again, its next part is shown." if more else ""
        self._cut.pop(resource, None)
        self._asked[resource] = text
        return ""

    def _part(self, resource: str, text: str, room: int) -> str:
        """Returns beginning and end of a text; when it is asked for again, each time the next part of its middle."""
        before = self._cut.get(resource, len(text))
        if before >= len(text):
            self._cut[resource] = room // 2
            return cap_middle(text, room)
        # From the beginning of a line, unless it is so long that the same would be shown again.
        before = max(text.rfind("\n", 0, before) + 1, before - room // 4)
        self._cut[resource] = before + room
        after = max(0, len(text) - before - room)
        left_out = f"\n[… {after} characters left out …]" if after else ""
        begun = f"[… {before} characters left out …]\n" if before else ""
        return f"{begun}{text[before : before + room]}{left_out}"
