"""What a model has managed so far decides in which form it is asked first; what is not known changes nothing."""

import json
from pathlib import Path

import pytest

from orchestrator.app.briefs import begins_with, outcomes, with_experience
from orchestrator.core.event import Event
from orchestrator.reports.report import forms
from orchestrator.settings import Policies, Settings
from orchestrator.storage.state_folder import StateFolder

SMALL = Settings.model_validate({"provider": {"name": "openai", "model": "small"}})


def read(asked: str, given: str, status: str, model: str = "small", *, copied: bool = False) -> Event:
    data = {"asked": asked, "given": given, "status": status, "model": model, "copied": copied}
    return Event.model_validate(
        {"id": "x", "time": "2026-01-01T00:00:00Z", "level": "debug", "sprint": "S", "name": "answer_read",
         "message": "", "data": data}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("events", "form"),
    [
        ([], "plan"),
        ([read("plan", "plan", "refused")] * 2, "plan"),
        ([read("plan", "plan", "refused")] * 3, "whole"),
        ([read("plan", "plan", "refused")] * 3 + [read("plan", "plan", "ok")] * 3, "plan"),
        ([read("plan", "whole", "repaired")] * 3, "whole"),
        ([read("plan", "json", "ok")] * 3 + [read("whole", "whole", "refused")] * 3, "json"),
        ([read("plan", "plan", "truncated")] * 9, "plan"),
    ],
)
def test_a_form_that_is_missed_most_times_is_not_begun_with(events: list[Event], form: str) -> None:
    assert begins_with(forms(events)) == form


def test_the_reports_of_a_state_folder_are_what_is_remembered(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    told = forms(
        [read("plan", "whole", "repaired", "small-2026")] * 3 + [read("json", "json", "ok", "big", copied=True)]
    )
    for sprint, text in (("S1", json.dumps({"totals": {"forms": [one.model_dump() for one in told]}})), ("S2", "{")):
        folder.report(sprint).parent.mkdir(parents=True)
        folder.report(sprint).write_text(text)
    known = outcomes(folder)
    assert sorted(known, key=str) == sorted(told, key=str)
    found = with_experience(Policies(), SMALL, known)
    assert found.begin_with == {"mike": "whole", "alex": "whole", "jordan": "whole"}
    assert found.without_examples == ()
    big = Settings.model_validate(
        {"provider": {"name": "openai", "model": "small"}, "personas": {"alex": {"model": "big"}}}
    )
    assert with_experience(Policies(), big, known).without_examples == ("alex",)
    assert with_experience(Policies(), big, known).begins("alex") == "plan"
    assert with_experience(Policies(), Settings(), known, "scripted").begin_with == {}
