"""Secrets in what models read: each is replaced by a name that stands for it, and never comes back as its value."""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from orchestrator.domain.redaction import worth_hiding
from orchestrator.domain.secret_shapes import MASK, Found, secrets_in

_TAG_DIGITS = 12
_MASKS = re.compile(rf"{MASK}[0-9A-Za-z]*|(?i:masked\\?[_ -]secret\\?[_ -][0-9a-f]{{6,}})")
"""The second way: as a careless author spells them."""
_BETWEEN = re.compile(r"\\?[_ -]")
_SPELLING = re.compile(r"[^A-Za-z0-9]+|(?<=\\)[rn]")
"""Line breaks, quotes and marks of a diff, that a secret of several lines is written with in one place or another."""


class Masked(NamedTuple):
    """A text as a model may read it."""

    text: str
    secrets: tuple[Found, ...]
    """Where the secrets stand in the text as it was."""


class Restored(NamedTuple):
    """A text that a model wrote, with the secrets it stands for."""

    text: str
    unknown: tuple[str, ...]
    """Names of secrets that the file does not hold: the text must not be written."""


@dataclass(frozen=True)
class Masks:
    """Names for secrets: the same for the same secret as long as `key` is the same, and of no use to guess it by.

    `known` are secrets that are masked wherever they stand, whatever they look like.
    """

    key: bytes = field(default=b"", repr=False)
    known: tuple[str, ...] = field(default=(), repr=False)

    def masked(self, text: str) -> Masked:
        """`text` with a name in place of each secret; masking it again changes nothing."""
        found = secrets_in(text)
        if found:
            pieces, at = [], 0
            for one in found:
                pieces += [text[at : one.start], self.name(text[one.start : one.end])]
                at = one.end
            text = "".join((*pieces, text[at:]))
        for secret in worth_hiding(self.known):
            if secret in text:
                text = text.replace(secret, self.name(secret))
        return Masked(text, found)

    def knowing(self, secrets: Iterable[str]) -> "Masks":
        """The same with more secrets that are masked wherever they stand; words are left out."""
        more = {*self.known, *worth_hiding(secrets)}
        if len(more) == len(self.known):
            return self
        return replace(self, known=tuple(sorted(more, key=lambda secret: (-len(secret), secret))))

    def name(self, secret: str) -> str:
        """What stands for this secret."""
        spelt = _SPELLING.sub("", secret).encode("utf-8", "surrogatepass")
        return MASK + hmac.new(self.key, spelt, hashlib.sha256).hexdigest()[:_TAG_DIGITS]

    def restored(self, text: str, before: str | None) -> Restored:
        """`text` with the secrets of `before`, the file that it replaces, where it names them.

        A name that stands in that file itself is its own text. One for which the file holds no secret, or several, is
        unknown: a secret is put back where it was, and copied nowhere else.
        """
        if not masks_in(text):
            return Restored(text, ())
        own, values = frozenset(masks_in(before or "")), self._values(before or "")
        unknown: list[str] = []

        def put_back(match: re.Match[str]) -> str:
            name = match[0]
            if name in own:
                return name
            tag = _BETWEEN.sub("_", name.lower()).removeprefix(MASK.lower())
            meant = values.get(MASK + tag, ())
            if len(meant) != 1:
                unknown.append(name)
                return name
            return next(iter(meant))

        return Restored(_MASKS.sub(put_back, text), tuple(dict.fromkeys(unknown)))

    def _values(self, text: str) -> Mapping[str, frozenset[str]]:
        values: dict[str, set[str]] = {}
        found = (text[one.start : one.end] for one in secrets_in(text))
        for secret in (*found, *(known for known in worth_hiding(self.known) if known in text)):
            values.setdefault(self.name(secret), set()).add(secret)
        return {name: frozenset(secrets) for name, secrets in values.items()}


def masks_in(text: str) -> tuple[str, ...]:
    """The names of secrets that stand in `text`, each once, in order."""
    return tuple(dict.fromkeys(_MASKS.findall(text)))
