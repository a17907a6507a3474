"""Keys, tokens and passwords: where they stand in a text, redacted in what is shown, masked in what models read."""

import hashlib
import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

_SHORT = 80
"""Characters of a text for which the result of looking for secrets is kept."""
MASK = "MASKED_SECRET_"
"""How the name begins that stands for a secret in prompts; see `Masks`."""


class Found(NamedTuple):
    """Where a secret stands in a text: the value alone, without its name and quotes."""

    start: int
    end: int
    kind: str
    """What it is, for people; nothing of the value."""


# Values that only look like secrets: masking them would damage texts.
_PLACEHOLDER = re.compile(
    r"example|dummy|fake|sample|placeholder|change.?me|your|replace|insert|redacted|masked|hidden|xxx|\*\*\*|\.\.\."
    r"|1234567|abcdef|qwerty|foobar|default|secret.?(key|token)|my.?(secret|token|password|key)|not.?a|00000|todo",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"[${}<>()\[\]|`]|%[(sd]|\\")
"""A value that holds one of these is put in by something else, or is code."""
# Passwords of examples and local services: hiding them would take words out of every text.
_COMMON = re.compile(
    r"(?:(?:passw(?:or)?d|passphrase|pass|pwd|secret|user(?:name)?|token|admin|root|guest|test(?:er|ing)?|tiger|scott"
    r"|postgres(?:ql)?|mysql|mariadb|redis|rabbitmq|mongo(?:db)?|localhost|local|development|dev|demo|app|db|web|api|key"
    r"|none|null|true|false|undefined)[_.-]?){1,4}[0-9]{0,4}!?",
    re.IGNORECASE,
)
_ADDRESSES = re.compile(
    r"(?:[A-Z]{1,12}_)*?(?:PRIMARY|FOREIGN|SORT|CACHE|PARTITION|UNIQUE|GROUP|ORDER|ROUTING|INDEX)_KEYS?"
)
"""Keys that name a place in a table, a cache or a queue."""
# Twelve: shorter runs of letters and digits are words, dates and versions.
_RUN = re.compile(r"[A-Za-z0-9+/]{12,}")
LONGEST_WORD = 24
"""Letters from which on nothing is one word any more."""
_JOINED = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NAMES_A_SECRET = re.compile(r"SECRET|TOKEN|PASS|PWD|API_?KEY|ACCESS|PRIVATE|CREDENTIAL")
# `token_url` names a secret's place and not the secret.
_NAMES_A_THING = re.compile(
    r"(?i)(url|uri|file|path|name|ttl|timeout|length|size|count|type|alg|algorithm|id|host|port|expiry|expires|minutes"
    r"|seconds|hours|days|dir|prefix|suffix|header|limit|env|var|field|column|label|scope|public_?key\w*"
    r"|lifetime|duration|budget|hashers?|cookie|class|backend|provider|manager|issuer|audience|policy|store|service|mode"
    r"|model|kind|version|format|pattern|roles?|strategy|region|domain|method|realm|bucket|max|min)$"
)


def _dense(value: str) -> bool:
    """Returns whether letters and digits are mixed as only a generator mixes them."""
    if _PLACEHOLDER.search(value) or _TEMPLATE.search(value):
        return False
    return any(_mixed(run) or _scrambled(run) for run in _RUN.findall(value))


def _mixed(run: str) -> bool:
    # A generator changes often between letters and digits; `release2024b` does it twice.
    digits, letters = sum(map(str.isdigit, run)), sum(map(str.isalpha, run))
    turns = sum(one.isdigit() != two.isdigit() for one, two in pairwise(run))
    return digits >= 2 and letters >= 2 and turns >= 3 and len(set(run)) >= 8


def _scrambled(run: str) -> bool:
    """Returns whether these are many letters and no words, also none that are joined as in `userAccessToken`."""
    if len(run) < LONGEST_WORD or not run.isalpha() or len(set(run)) < 8:
        return False
    words = _JOINED.findall(run)
    return max(map(len, words)) >= LONGEST_WORD or len(run) < 3.5 * len(words)


def _varied(value: str) -> bool:
    return any(map(str.isdigit, value)) and len(set(value)) >= 8


def _mixed_token(value: str) -> bool:
    return not _PLACEHOLDER.search(value) and _varied(value)


def _provider_key(value: str) -> bool:
    """No name of a style (`sk-folding-cube-loader-1`)."""
    return _mixed_token(value) and (any(map(str.isupper, value)) or any(map(_mixed, _RUN.findall(value))))


def _password(value: str) -> bool:
    """A password in an address: no word that examples use."""
    if _COMMON.fullmatch(value) or _PLACEHOLDER.search(value) or _TEMPLATE.search(value) or len(value) < 6:
        return False
    return len(value) >= 12 or not (value.isalpha() and value.islower())


def _set(name: str, value: str) -> bool:
    """A value that a file of settings gives to a name like `API_KEY`; other keys than secret ones are plain words."""
    if _ADDRESSES.fullmatch(name):
        return False
    if not _NAMES_A_SECRET.search(name) and not any(map(str.isdigit, value)):
        return False
    if _COMMON.fullmatch(value) or _PLACEHOLDER.search(value) or _TEMPLATE.search(value):
        return False
    return not value.startswith(("/", "./", "~", "@", "http://", "https://")) and len(set(value)) >= 4


class _Shape(NamedTuple):
    kind: str
    marker: str
    """A text without it holds none: looked for first, because that is fast."""
    pattern: re.Pattern[str]
    """The secret is its group `v`, or the whole match."""
    plausible: Callable[[str], bool] = bool


def _shape(kind: str, marker: str, pattern: str, plausible: Callable[[str], bool] = bool) -> _Shape:
    return _Shape(kind, marker, re.compile(pattern), plausible)


_TOKENS = (
    _shape("api key", "sk-", r"sk-[A-Za-z0-9_-]{20,}", _provider_key),
    *(_shape("github token", f"gh{one}_", rf"gh{one}_[A-Za-z0-9]{{30,}}") for one in "pousr"),
    _shape("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    _shape("gitlab token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _shape("cloud key", "AKIA", r"AKIA[0-9A-Z]{16}(?![0-9A-Za-z])", _mixed_token),
    _shape("cloud key", "ASIA", r"ASIA[0-9A-Z]{16}(?![0-9A-Za-z])", _mixed_token),
    _shape("cloud key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _shape("cloud key", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    _shape("cloud token", "ya29.", r"ya29\.[A-Za-z0-9_-]{30,}"),
    _shape("cloud key", "AccountKey=", r"AccountKey=(?P<v>[A-Za-z0-9+/]{60,}={0,2})"),
    *(_shape("chat token", f"xox{one}-", rf"xox{one}-[A-Za-z0-9-]{{15,}}", _varied) for one in "abeoprs"),
    _shape("chat webhook", "/services/T", r"/services/(?P<v>T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{20,})"),
    *(
        _shape("payment key", f"{who}k_{where}_", rf"{who}k_{where}_[A-Za-z0-9]{{20,}}", _mixed_token)
        for who in "sr"
        for where in ("live", "test")
    ),
    _shape("webhook key", "whsec_", r"whsec_[A-Za-z0-9+/]{24,}", _mixed_token),
    _shape("package registry token", "npm_", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])", _mixed_token),
    _shape("package registry token", "pypi-", r"pypi-[A-Za-z0-9_-]{60,}"),
    _shape("model hub token", "hf_", r"hf_[A-Za-z0-9]{30,}", _mixed_token),
    _shape("api key", "gsk_", r"gsk_[A-Za-z0-9]{40,}", _mixed_token),
    _shape("mail key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}"),
    _shape("host token", "dop_v1_", r"dop_v1_[0-9a-f]{64}"),
    _shape("vault token", "hvs.", r"hvs\.[A-Za-z0-9_-]{24,}"),
    _shape("encryption key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _shape("signed token", "eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"),
)
_GAP = r"(?:[\s\"'+,;]|\\[rn])"
_LINE = r"[A-Za-z0-9+/=]{40}"
_HEADER = rf"[A-Z][A-Za-z-]*: (?:(?!PRIVATE KEY|{MASK}|{_LINE})[^\n\\]){{1,200}}(?:(?:\n|\\[rn]){_GAP}*|(?={_LINE}))"
"""Ends with its line or where the key begins in it, nowhere else: whatever is masked, no other part is the key then."""
_IN_PLACE = (
    _shape(
        "private key",
        "PRIVATE KEY",
        rf"BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_GAP}*(?:{_HEADER}){{0,4}}"
        rf"(?P<v>[A-Za-z0-9+/=]{{20,}}(?:{_GAP}+[A-Za-z0-9+/=]{{16,}})*(?:{_GAP}+[A-Za-z0-9/][A-Za-z0-9+/=]*)?)",
    ),
    _shape(
        "password in an address",
        "://",
        r"://[^/\s:@\"'<>`]{0,200}:(?P<v>[^/\s\"'<>`,]{3,200})@(?=[A-Za-z0-9\[])",
        _password,
    ),
    _shape("token in an address", "://", r"://(?P<v>[A-Za-z0-9_.-]{20,200})@(?=[A-Za-z0-9\[])", _dense),
    _shape("bearer token", "earer", r"[Bb]earer\s+(?P<v>[A-Za-z0-9._~+/-]{20,2000}=*)", _dense),
)
# A line of an `.env` file or of its diff.
_SETTING = re.compile(
    r"^[+\- \ufeff]?[ \t]*(?:export[ \t]+)?(?P<name>[A-Z0-9_]{0,60}?(?:SECRET|TOKEN|PASSW(?:OR)?D|API_?KEY|[_]KEY|_PASS"
    r"|_PWD|CREDENTIALS?)[A-Z0-9_]{0,60})=(?P<q>[\"']?)(?P<v>[^\s\"'#]{8,2000})(?P=q)[ \t]*\r?$",
    re.MULTILINE,
)
# What is given to a name: in quotes as any language has it, or bare as in YAML, INI, headers and sentences; a bare
# value is no call and no part of a longer name. The name is looked for where a value is: that way round it is fast.
_GIVEN = re.compile(
    r"(?::=|=>|[:=]|[ \t]is(?=[ \t]))[ \t]{0,8}(?:[rbuRBU]?(?P<q>[\"'])(?P<v>[^\"'\s]{16,400})(?P=q)"
    r"|`?(?P<bare>[A-Za-z0-9+/_.~-]{15,399}[A-Za-z0-9+/_~-]={0,2})(?![A-Za-z0-9+/_~(\[-]|\.\w))"
)
_BEFORE = re.compile(
    r"(?P<name>(?:secret|token|passw(?:or)?d|api_?-?key|access_?key|auth_?key|private_?key|credential)"
    r"[A-Za-z0-9_-]{0,40}|(?<![A-Za-z0-9])(?:pass|pwd))[\"']?[ \t]{0,8}\Z",
    re.IGNORECASE,
)
_LONGEST_NAME = 80
_NO_NAME = "<MASKED_VALUE>"
"""As long as `MASK`, and in no name: what stands for a secret does not make one of the value beside it
(`MASKED_SECRET_1: value`)."""
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


_MOST_CLEAN = 10_000
"""Digests that are kept, some 100 bytes each."""
_clean: set[bytes] = set()
"""Digests of texts that hold no secret: prompts repeat the same parts, and each is read before and after masking."""


def secrets_in(text: str) -> tuple[Found, ...]:
    """The secrets in `text`, in order and apart from each other; made for few false alarms. Linear in its length."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if digest in _clean:
        return ()
    found = _found_in(text)
    if not found:
        if len(_clean) >= _MOST_CLEAN:
            _clean.clear()
        _clean.add(digest)
    return found


def _found_in(text: str) -> tuple[Found, ...]:
    # Of two that begin together the longer one first, so that the shorter one falls into it.
    found = sorted((*_tokens(text), *_in_place(text), *_assigned(text)), key=lambda one: (one.start, -one.end))
    apart: list[Found] = []
    for one in found:
        if text.startswith(MASK, one.start):
            continue
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
        elif one.end > apart[-1].end:
            apart[-1] = apart[-1]._replace(end=one.end)
    return tuple(apart)


def _tokens(text: str) -> Iterator[Found]:
    """Tokens that show by themselves what they are."""
    for shape in _TOKENS:
        if shape.marker not in text:
            continue
        for match in shape.pattern.finditer(text):
            start, end = match.span("v") if "v" in shape.pattern.groupindex else match.span()
            inside = match.start() and text[match.start() - 1] in _WORD and shape.marker[0].isalnum()
            if not inside and shape.plausible(text[start:end]):
                yield Found(start, end, shape.kind)


def _in_place(text: str) -> Iterator[Found]:
    """What is a secret by where it stands."""
    for shape in _IN_PLACE:
        if shape.marker in text:
            for match in shape.pattern.finditer(text):
                if shape.plausible(match["v"]):
                    yield Found(*match.span("v"), shape.kind)


def _assigned(text: str) -> Iterator[Found]:
    """What a name says to be a secret."""
    text = text.replace(MASK, _NO_NAME)
    for match in _SETTING.finditer(text):
        if not _NAMES_A_THING.search(match["name"]) and _set(match["name"], match["v"]):
            yield Found(*match.span("v"), "secret of a setting")
    for match in _GIVEN.finditer(text):
        name = _BEFORE.search(text, max(0, match.start() - _LONGEST_NAME), match.start())
        group = "v" if match["v"] else "bare"
        if name is not None and not _NAMES_A_THING.search(name["name"]) and _dense(match[group]):
            yield Found(*match.span(group), "secret in code")


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
SURE = 16
"""Characters from which on a known secret is one also inside of a longer word."""
# As people name variables; `_NO_SECRET` takes back `TOKEN_URL`, `KEY_FILE` and public keys.
_SECRET_NAME = re.compile(
    r"(?i)(api_?key|secret|token|passw(or)?d|passphrase|credential|private_?key|_(key|auth|pass|pwd|pw)$)"
)
# Variables that point to a secret, or are public.
_NO_SECRET = re.compile(r"(?i)(^ssh_|_(file|path|dir|url|uri|id|name|ttl|type|host|port)$|public)")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """`text` without what looks like a key, a token or a password in an address, and without the `known` secrets."""
    for secret in known:
        if len(secret) >= SHORTEST_KNOWN:
            text = _without(text, secret, REDACTED) if secret in text else text
            for word in encoded_in(text, secret):
                text = text.replace(word, REDACTED)
    return _redact_short(text) if len(text) <= _SHORT else _redact(text)


def _redact(text: str) -> str:
    text = _SECRET.sub(REDACTED, text)
    found = (one for one in secrets_in(text) if not text.startswith(REDACTED, one.start))
    return _replaced(text, ((one, REDACTED) for one in found))


# Names, states and ids, which stand in every event.
_redact_short = lru_cache(maxsize=4096)(_redact)


def _replaced(text: str, replacements: Iterable[tuple[Found, str]]) -> str:
    """`text` with other words in these places, which come in order."""
    pieces, at = [], 0
    for place, words in replacements:
        pieces += [text[at : place.start], words]
        at = place.end
    return "".join((*pieces, text[at:]))


_URL_SAFE = str.maketrans("+/", "-_")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_HEX = frozenset("0123456789abcdefABCDEF")


@lru_cache(maxsize=4096)
def _encodings(secret: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Returns each encoding of the secret, with the letters that what stands around it is written in as well."""
    raw = secret.encode("utf-8", "surrogatepass")
    address = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    address |= {re.sub("%..", lambda code: code[0].lower(), one) for one in address}
    found = [(one, frozenset[str]()) for one in sorted(address - {secret})]
    found += [(raw.hex(), _HEX), (raw.hex().upper(), _HEX)]
    for before in range(3):  # of a longer text, by where the secret begins in a group of three bytes
        # Only letters that no other byte has a part in.
        core = b64encode(bytes(before) + raw).decode()[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
        found += [(one, _BASE64) for one in sorted({core, core.translate(_URL_SAFE)})]
    return tuple(found)


def encoded_in(text: str, secret: str) -> list[str]:
    """Returns the words of `text` that hold the secret in base64, in hex or encoded for an address, whole."""
    found: list[str] = []
    for core, letters in _encodings(secret):
        at = text.find(core)
        while at >= 0:
            start, end = at, at + len(core)
            while start > 0 and text[start - 1] in letters:
                start -= 1
            while end < len(text) and text[end] in letters:
                end += 1
            while letters is _BASE64 and text.startswith("=", end):
                end += 1
            found.append(text[start:end])
            at = text.find(core, end)
    return sorted(set(found), key=lambda word: (-len(word), word))


def _without(text: str, secret: str, words: str) -> str:
    """Returns `text` with other words for a known secret; a short one may by chance be a part of a hash or a name."""
    if len(secret) >= SURE:
        return text.replace(secret, words)
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", lambda _: words, text)


def redacted(value: Any, known: Iterable[str] = ()) -> Any:
    """Returns a JSON-able value with every text in it redacted, names of objects included."""
    known = tuple(known)
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, list | tuple):
        return [redacted(entry, known) for entry in value]
    if isinstance(value, Mapping):
        return {redact(str(name), known): redacted(entry, known) for name, entry in value.items()}
    return value


def is_secret_name(name: str) -> bool:
    """Returns whether a variable of this name holds a secret, as people name them."""
    return bool(_SECRET_NAME.search(name)) and not _NO_SECRET.search(name)


def secrets_of(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the values of the variables that hold secrets, and the passwords in addresses; the longest first."""
    held = {value.strip() for name, value in variables.items() if is_secret_name(name)}
    for value in variables.values():
        held |= {value[one.start : one.end] for one in secrets_in(value)}
    return tuple(sorted(worth_hiding(held), key=lambda value: (-len(value), value)))


def worth_hiding(values: Iterable[str]) -> Iterator[str]:
    """Yields those of `values` that are no words: a password that is one would take the word out of every text."""
    for value in values:
        word = value.isalpha() and (value.islower() or value.istitle()) and len(value) < LONGEST_WORD
        number = value.isdigit() and len(value) < 12  # a date, a time or an amount
        if len(value) >= SHORTEST_KNOWN and len(set(value)) >= 4 and not (word or number or _COMMON.fullmatch(value)):
            yield value


# A line of an `.env` file; the value may be quoted, and a comment may follow.
_ENV_LINE = re.compile(
    r"^\ufeff?[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*=[ \t]*"
    r"(?:\"(?P<d>[^\"\n]*)\"|'(?P<s>[^'\n]*)'|(?P<v>[^\s#\"'][^\n]*?))?[ \t]*(?:[ \t]#.*)?\r?$",
    re.MULTILINE,
)
_FILLED_IN = re.compile(r"^[$/.~@]|\$\{|\$\(|\{\{|<[^>]*>|^https?://")
"""A value that is a place, or that something else puts in; passwords may hold any other sign."""
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ID = re.compile(r"[A-Za-z0-9]{8,}")


def env_values(text: str) -> tuple[str, ...]:
    """Returns the values of an `.env` file that are worth hiding wherever they stand: secrets by their names, and
    under any name passwords in addresses and what was generated.

    What is also the value of a plain name, or a part of a name, is a word of the project: `POSTGRES_PASSWORD` is often
    the same as `POSTGRES_DB`.
    """
    pairs = [(one["name"], one["d"] or one["s"] or one["v"] or "") for one in _ENV_LINE.finditer(text)]
    plain = {value for name, value in pairs if not is_secret_name(name)}
    names = "\n".join(name.lower() for name, _ in pairs)
    held: list[str] = []
    for name, value in pairs:
        held += (value[one.start : one.end] for one in secrets_in(value))
        if not is_secret_name(name) or _FILLED_IN.search(value):
            held += _generated(value)
        elif not _NAMES_A_THING.search(name) and value not in plain and value.lower().replace("-", "_") not in names:
            held += [] if _PLACEHOLDER.search(value) else [value]
    return tuple(dict.fromkeys(worth_hiding(held)))


_WORDS = re.compile(r"[a-z]+(?:[-_. ][a-z]+){0,2}")


def is_wordy(value: str) -> bool:
    """Returns whether this may as well be a name in the project: `inventory-service`."""
    return _WORDS.fullmatch(value) is not None


def _generated(value: str) -> Iterator[str]:
    """Yields the value when it is an id or a token; of an address, what is one in it."""
    if _PLACEHOLDER.search(value) or _TEMPLATE.search(value):
        return
    found = [run for run in _ID.findall(value) if _mixed(run) or _scrambled(run)]
    if (found or _UUID.fullmatch(value)) and not re.search(r"[\s/,;@]", value):
        yield value
    else:
        yield from found


_TAG_DIGITS = 12  # 48 bits: unique within a project
_MASKS = re.compile(rf"{MASK}[0-9A-Za-z]*|(?i:masked\\?[_ -]secret\\?[_ -][0-9a-f]{{6,}})")
"""The second way: as a careless author spells them."""
_BETWEEN = re.compile(r"\\?[_ -]")
_SPELLING = re.compile(r"[^A-Za-z0-9]+|(?<=\\)[rn]")
"""Line breaks, quotes and marks of a diff, that a secret of several lines is written with in one place or another."""


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

    def masked(self, text: str) -> str:
        """`text` with a name in place of each secret; masking it again changes nothing."""
        text = _replaced(text, ((one, self.name(text[one.start : one.end])) for one in secrets_in(text)))
        for secret in worth_hiding(self.known):
            text = _without(text, secret, self.name(secret)) if secret in text else text
            for word in encoded_in(text, secret):
                text = text.replace(word, self.name(word))
        return text

    def knowing(self, secrets: Iterable[str]) -> "Masks":
        """Returns the same with more secrets that are masked wherever they stand; words are left out."""
        more = {*self.known, *worth_hiding(secrets)}
        if len(more) == len(self.known):
            return self
        return replace(self, known=tuple(sorted(more, key=lambda secret: (-len(secret), secret))))

    def name(self, secret: str) -> str:
        """What stands for this secret."""
        spelt = _SPELLING.sub("", secret).encode("utf-8", "surrogatepass")
        return MASK + hmac.new(self.key, spelt, hashlib.sha256).hexdigest()[:_TAG_DIGITS]

    def restored(self, text: str, before: str | None) -> Restored:
        """Returns `text` with the secrets of `before`, the file that it replaces, where it names them.

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
        known = [
            one for secret in worth_hiding(self.known) for one in (secret, *encoded_in(text, secret)) if one in text
        ]
        for secret in (*found, *known):
            values.setdefault(self.name(secret), set()).add(secret)
        return {name: frozenset(secrets) for name, secrets in values.items()}


def masks_in(text: str) -> tuple[str, ...]:
    """Returns the names of secrets that stand in `text`, each once, in order."""
    return tuple(dict.fromkeys(_MASKS.findall(text)))
