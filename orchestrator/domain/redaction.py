"""What must not leave the machine: keys, tokens and passwords are taken out of texts that are shown or handed on."""

import re
from collections.abc import Iterable

REDACTED = "[redacted]"
_SECRET = re.compile(
    r"(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|(?<=PRIVATE KEY-----)[A-Za-z0-9+/=\s\\]{40,}"
    # No quote stands in an address, raw or escaped: what follows it belongs to the text around.
    r"|(?i:bearer)\s+[A-Za-z0-9._~+/-]{16,}=*|://[^/\s:@\"<>]+:[^/\s@\"<>]+@)"
)
SHORTEST_KNOWN = 8
"""Characters from which on a known secret is looked for: shorter ones are words."""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """`text` without what looks like a key, a token or a password in an address, and without the `known` secrets."""
    for secret in known:
        if len(secret) >= SHORTEST_KNOWN:
            text = text.replace(secret, REDACTED)
    return _SECRET.sub(REDACTED, text)
