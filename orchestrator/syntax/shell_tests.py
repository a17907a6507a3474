"""What stands between `[[` and `]]` in a shell script."""

import re

from orchestrator.syntax.problem import place
from orchestrator.syntax.shell_parts import Words

_END = re.compile(r"\]\](?=[\s;&|)<>]|\Z)")
_TEST_SIGNS = re.compile(r"&&|\|\|?|[()<>!]")


class Tests(Words):
    """Words, and the tests made of them."""

    def test(self, begun: int) -> None:
        """Go behind the test that begins at `begun`, from behind its brackets on."""
        while self.at < len(self.text):
            self.blanks()
            if _END.match(self.text, self.at):
                self.at += 2
                return
            if self.here("\n"):
                self.newline()
            elif self.here("=~"):
                self.at += 2
                self._regex()
            elif match := _TEST_SIGNS.match(self.text, self.at):
                self.at = match.end()
            elif not self.word():
                self.stop(f"unexpected `{self.text[self.at]}` in `[[` of line {place(self.text, begun)[0]}")
        self.never_closed("`[[`", begun, "]]")

    def _regex(self) -> None:
        """What stands behind `=~`: a word in which brackets and bars are its own."""
        self.blanks()
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\n" or (char in " \t" and depth <= 0):
                return
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char in "\\'\"`$":
                self._piece(char)
            else:
                self.at += 1
