"""Where something opened in a shell text ends, in one pass; escapes of `$'…'` and of backticks."""

import re

_STEP = re.compile(r"""\\.|\$\(|\$\{|\$'|['"`(){}]|(?<![^\s;&|(])#[^\n]*""", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<code>[0-9a-fA-F]{1,4})|U(?P<long>[0-9a-fA-F]{1,8})|(?P<octal>[0-7]{1,3})"
    r"|c.|(?P<char>.))",
    re.DOTALL,
)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ITSELF = frozenset("\\'\"?")
_LAST_CODE, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


def closing(text: str, start: int, bracket: str) -> int:
    """Where `bracket` (`)` or `}`) closes what was opened before `start`, -1 when nothing does.

    Knows quotes, comments and whatever is nested inside.
    """
    open_ones, at = [bracket], start
    while match := _STEP.search(text, at):
        at, sign = match.end(), match[0]
        top = open_ones[-1]
        if sign in {"'", "$'"} and top != '"':
            at = _quote_end(text, at, ansi=sign == "$'") + 1
        elif sign == "`":
            at = backtick_end(text, at) + 1
        elif sign == top:
            open_ones.pop()
            if not open_ones:
                return match.start()
        elif opened := _opens(sign, top):
            open_ones.append(opened)
        elif sign[0] == "#" and top != ")":
            at = match.start() + 1
    return -1


def _opens(sign: str, top: str) -> str:
    """What closes a sign that opens something inside `top`, "" for one that does not."""
    if sign == "$(" or (sign == "(" and top == ")"):
        return ")"
    if sign == "${":
        return "}"
    return '"' if sign == '"' else ""


def _quote_end(text: str, start: int, *, ansi: bool) -> int:
    end = ansi_text(text, start)[1] if ansi else text.find("'", start)
    return len(text) if end < 0 else end


def ansi_text(text: str, start: int) -> tuple[str, int]:
    """What `$'…'` says from `start` on, and where its quote closes it (-1: nowhere)."""
    match = re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL).match(text, start)
    end = match.end() if match else start
    said = _ESCAPE.sub(_meant, text[start:end])
    return said, end if text.startswith("'", end) else -1


def _meant(match: re.Match[str]) -> str:
    if match["char"]:
        char = match["char"]
        return _LETTERS.get(char, char if char in _ITSELF else f"\\{char}")
    digits = match["hex"] or match["code"] or match["long"]
    code = int(digits, 16) if digits else int(match["octal"], 8) if match["octal"] else 0
    return chr(code) if 0 < code <= _LAST_CODE and code not in _SURROGATES else ""


def escaped_text(text: str) -> str:
    """What `echo -e` and `printf` make of the backslashes in `text`."""
    return _ESCAPE.sub(lambda match: match[0] if match[0][1] == "c" else _meant(match), text)


def backtick_end(text: str, start: int) -> int:
    """Where the next backtick stands that no backslash hides; the end of the text when none does."""
    match = re.compile(r"(?:[^`\\]|\\.)*", re.DOTALL).match(text, start)
    return match.end() if match else len(text)


def unescaped(text: str) -> str:
    """What stands between backticks, without the backslashes that only these need."""
    return re.sub(r"\\([`\\$])", r"\1", text)
