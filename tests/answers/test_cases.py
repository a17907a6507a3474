"""Cases: a reply without its secrets, and what another version makes of it."""

import json
from functools import partial
from typing import Any

import pytest

from orchestrator.answers.cases import Verdict, exported, replay
from orchestrator.core.calls.wire import DeliveryAnswer
from orchestrator.core.case import Case, CaseSource, Seen
from orchestrator.core.secrets import redact

SOURCE = CaseSource(sprint="SP-1", story="A", persona="alex", purpose="delivery", turn=1)
CONTRACT = DeliveryAnswer.model_json_schema()
VALUE = {"files": [{"path": "a.py", "content": "A = 1\n"}], "story_id": "A"}
TEXT = json.dumps(VALUE)
KEY = "sk-abcdefghijklmnopqrstuvwx"


def case(status: str, value: Any, *, layer: str = "strict", text: str = TEXT) -> Case:
    seen = Seen.model_validate({"status": status, "layer": layer, "value": value})
    return Case.model_construct(name="c", text=text, contract=CONTRACT, seen=seen, source=SOURCE)


@pytest.mark.parametrize(
    ("kept", "verdict", "differs_at"),
    [
        (case("ok", VALUE), Verdict.SAME, None),
        (case("repaired", VALUE), Verdict.OTHER_WAY, None),
        (case("ok", VALUE, layer="scan"), Verdict.OTHER_WAY, None),
        (case("refused", None), Verdict.BETTER, ""),
        (case("truncated", {"story_id": "A"}), Verdict.BETTER, "files"),
        (case("repaired", VALUE | {"story_id": "B"}), Verdict.WORSE, "story_id"),
        (case("ok", VALUE | {"files": [{"path": "a.py", "content": "B"}]}), Verdict.WORSE, "files[0].content"),
        (case("ok", VALUE | {"files": [*VALUE["files"], 1]}), Verdict.WORSE, "files[1]"),
        (case("ok", VALUE | {"more": 1}), Verdict.WORSE, "more"),
        (case("ok", {"files": [], "n": 1}, text='{"files": [], "n": true}'), Verdict.WORSE, "n"),
        (case("ok", VALUE, text=TEXT[:-5]), Verdict.WORSE, "story_id"),
        (case("truncated", {}, text="no"), Verdict.WORSE, ""),
    ],
)  # fmt: skip
def test_what_changed_for_the_worse(kept: Case, verdict: Verdict, differs_at: str | None) -> None:
    result = replay(kept)
    assert (result.verdict, result.differs_at) == (verdict, differs_at)


def test_secrets_are_gone_and_the_extraction_is_that_of_the_text_without_them() -> None:
    said = VALUE | {"notes": [KEY, "https://ann:geheim12@example.org", "my-own-secret", {KEY: 1}]}
    kept, found = exported("c", json.dumps(said), CONTRACT, SOURCE, partial(redact, known=["my-own-secret", "short"]))
    for secret in (KEY, "geheim12", "my-own-secret"):
        assert secret not in kept.text
        assert secret not in str(found)
    assert kept.seen.value == VALUE | {
        "notes": ["[redacted]", "https[redacted]example.org", "[redacted]", {"[redacted]": 1}]
    }
    assert (kept.source.redacted, kept.source.redaction_changed) == (True, None)
    assert replay(kept).verdict is Verdict.SAME
    assert exported("c", TEXT, CONTRACT, SOURCE, redact)[0].source == SOURCE


def test_a_redaction_that_changes_the_outcome_says_so() -> None:
    def eats_form(text: str) -> str:
        return text.replace('"files": [', "[redacted]")

    kept, found = exported("c", TEXT, CONTRACT, SOURCE, eats_form)
    assert "ok by layer strict with the secrets" in str(kept.source.redaction_changed)
    assert kept.seen.status == found.status != "ok"
    kept, _ = exported("c", TEXT.replace("a.py", "1111"), CONTRACT, SOURCE, lambda text: text.replace('"1111"', "1"))
    assert kept.source.redaction_changed == "the value differs in more than the secrets"


def test_an_address_is_not_taken_for_one_with_a_password_across_quotes() -> None:
    text = '{"u":"http://a","b":"c@d","e":\\"ftp://x\\",\\"y:z@w\\"}'
    assert redact(text) == text
