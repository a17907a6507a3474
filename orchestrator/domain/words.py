"""Numbers of things in words, texts without their blanks, and texts that are safe on a terminal."""


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 task`, `2 tasks`; `things` for a plural that is not made with an s."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def squeezed(text: str) -> str:
    """The text without any blanks: equal ones differ in their layout only."""
    return "".join(text.split())


def printable(text: str, *, keep: str = "\n\t") -> str:
    """The text, as long as before, with a blank for each character that a terminal would take as an order."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else " " for letter in text)
