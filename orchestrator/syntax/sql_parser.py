"""sqlglot asked whether it can read a statement, in one dialect after the other."""

import logging
from collections.abc import Iterable
from functools import cache


def parse_error(text: str, dialects: Iterable[str]) -> int | None:
    """Where (offset) the first of `dialects` stops, when none of them reads `text`; None when one does. Never raises.

    sqlglot takes much that no database takes, and does not know all that they take: a refusal is a doubt, no proof.
    """
    # Imported here: only what meets SQL pays for it.
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    _quiet()
    found: int | None = None
    for dialect in dialects:
        try:
            sqlglot.parse_one(text, dialect=dialect)
        except ParseError as error:
            place = error.errors[0] if error.errors else {}
            found = _offset(text, place.get("line"), place.get("col")) if found is None else found
        except SqlglotError:
            found = 0 if found is None else found
        except (RecursionError, ValueError, TypeError, AttributeError, IndexError, KeyError):
            return None  # its own fault, not the text's
        else:
            return None
    return found


@cache
def _quiet() -> None:
    """sqlglot tells on its logger what it cannot read; we see that by the result, and nobody else should."""
    logger = logging.getLogger("sqlglot")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _offset(text: str, line: object, column: object) -> int:
    if not isinstance(line, int) or not isinstance(column, int):
        return 0
    before = text.split("\n")[: line - 1]
    return max(0, sum(len(one) + 1 for one in before) + column - 1)
