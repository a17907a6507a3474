"""What must not leave the machine: keys, tokens and passwords are taken out of texts that are shown or handed on."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.domain.secret_shapes import secrets_in

REDACTED = "[redacted]"
_SECRET = re.compile(
    # Not the end of a word (`task-`, `disk-`), and no hyphenated words without a digit.
    r"((?:(?<![A-Za-z0-9_-])sk-(?=[A-Za-z_-]*[0-9]|[A-Za-z]{20})|sk-ant-api)[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|(?<=PRIVATE KEY-----)[A-Za-z0-9+/=\s\\]{40,}"
    # No quote stands in an address, raw or escaped: what follows it belongs to the text around.
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/-]{16,}=*|://[^/\s:@\"<>]+:[^/\s@\"<>]+@)"
)
"""Wider than what is masked in prompts: here a false alarm costs a word of a message."""
SHORTEST_KNOWN = 8
"""Characters from which on a known secret is looked for: shorter ones are words."""
_SECRET_NAME = re.compile(r"(?i)(api_?key|secret|token|passw(or)?d|passphrase|credential|private_?key|_(key|auth)$)")
_NO_SECRET = re.compile(r"(?i)(^ssh_|_(file|path|dir|url|uri|id|name|ttl|type|host|port)$|public)")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """`text` without what looks like a key, a token or a password in an address, and without the `known` secrets."""
    for secret in known:
        if len(secret) >= SHORTEST_KNOWN:
            text = text.replace(secret, REDACTED)
    text = _SECRET.sub(REDACTED, text)
    pieces, at = [], 0
    for one in secrets_in(text):
        if not text.startswith(REDACTED, one.start):
            pieces += [text[at : one.start], REDACTED]
            at = one.end
    return "".join((*pieces, text[at:]))


def redacted(value: Any, known: Iterable[str] = ()) -> Any:
    """A JSON-able value with every text in it redacted, names of objects included."""
    known = tuple(known)
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, list | tuple):
        return [redacted(entry, known) for entry in value]
    if isinstance(value, Mapping):
        return {redact(str(name), known): redacted(entry, known) for name, entry in value.items()}
    return value


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name holds a secret, as people name them."""
    return bool(_SECRET_NAME.search(name)) and not _NO_SECRET.search(name)


def secrets_of(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The values of the variables that hold secrets, and the passwords in addresses; the longest first."""
    held = {value.strip() for name, value in variables.items() if is_secret_name(name)}
    for value in variables.values():
        held |= {value[one.start : one.end] for one in secrets_in(value)}
    return tuple(sorted(worth_hiding(held), key=lambda value: (-len(value), value)))


def worth_hiding(values: Iterable[str]) -> Iterator[str]:
    """Those of `values` that are no words: a password that is one would take the word out of every text."""
    for value in values:
        plain = value.isalpha() and (value.islower() or value.istitle())
        if len(value) >= SHORTEST_KNOWN and not plain and not value.isdigit() and len(set(value)) >= 4:
            yield value
