"""Numbers of things, in words."""


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 task`, `2 tasks`; `things` for a plural that is not made with an s."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"
