"""Numbers of things in words, and texts without their blanks."""


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 task`, `2 tasks`; `things` for a plural that is not made with an s."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def squeezed(text: str) -> str:
    """The text without any blanks: equal ones differ in their layout only."""
    return "".join(text.split())
