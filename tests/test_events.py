"""docs/events.md lists the events that the code emits; whole runs are held against it in tests.support.play."""

import re
from pathlib import Path

from tests.event_table import TABLE, documented

PACKAGE = Path(__file__).parent.parent / "orchestrator"
EMITTED = re.compile(r'\b(?:_?emit|_?decide|Event)\((?:[^()"]*?,\s*)?\s*(?:name=)?"([a-z]+_[a-z_]+)"')


def test_the_table_has_the_events_of_the_code_and_no_other() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")))
    emitted = set(EMITTED.findall(code))
    assert len(emitted) > 50
    assert emitted - documented().keys() == set(), "emitted, and in no row"
    assert [name for name in documented() if f'"{name}"' not in code] == [], "a row, and nothing emits it"
    rows = re.findall(r"^\| `(\w+)`", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == sorted(documented()), "a row that cannot be read, or out of order"
