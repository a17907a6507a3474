"""Cases on disk: whole or not at all, never another one overwritten unasked, damage named by file."""

import json
from pathlib import Path

import pytest

from orchestrator.core.case import Case, CaseSource, CaseWritten, Seen
from orchestrator.core.errors import ConfigError
from orchestrator.storage.case_files import FILES, read_cases, write_case

EXTRACTION = {"value": {"a": "\ud83d"}, "status": "repaired", "layer": "repair", "repairs": []}


def case(name: str = "S+A+mike+breakdown+1", text: str = '\ufeff{"a":\r\n "\ud83d",}') -> Case:
    seen = Seen.model_validate(EXTRACTION)
    source = CaseSource(sprint="S", story="A", persona="mike", purpose="breakdown", turn=1, model="m")
    return Case.model_construct(name=name, text=text, contract={"type": "object"}, seen=seen, source=source)


def test_what_is_written_comes_back_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    for name in ("b", "a"):
        assert write_case(folder, case(name), EXTRACTION) is CaseWritten.WRITTEN
    (folder / "notes").mkdir()
    (folder / "README.md").write_text("mine")
    assert list(read_cases(folder)) == [case("a"), case("b")]
    assert sorted(path.name for path in (folder / "a").iterdir()) == sorted(FILES)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    assert write_case(folder, case("a"), EXTRACTION) is CaseWritten.UNCHANGED


def test_another_case_of_the_same_name_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    write_case(tmp_path, case(), EXTRACTION)
    other = case(text="other")
    assert write_case(tmp_path, other, EXTRACTION) is CaseWritten.KEPT
    assert list(read_cases(tmp_path)) == [case()]
    assert write_case(tmp_path, other, EXTRACTION, replace=True) is CaseWritten.REPLACED
    assert list(read_cases(tmp_path)) == [other]
    assert [path.name for path in tmp_path.iterdir()] == [case().name]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("extraction.json", "{", "is damaged"),
        ("extraction.json", '{"status": "fine", "layer": "x", "value": null}', "is damaged: status"),
        ("extraction.json", '{"status": "ok", "layer": "x", "value": 1}', "is damaged: value"),
        ("extraction.json", "[" * 100_000, "is damaged"),
        ("contract.json", "[]", "an object or null"),
        ("source.json", '{"sprint": "S"}', "is damaged: story"),
        ("text.txt", b"\xff", "no UTF-8"),
        ("source.json", None, "cannot read"),
        ("text.txt", None, "cannot read"),
    ],
)
def test_a_damaged_case_names_its_file(tmp_path: Path, file: str, content: str | bytes | None, said: str) -> None:
    write_case(tmp_path, case(), EXTRACTION)
    path = tmp_path / case().name / file
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=said) as caught:
        list(read_cases(tmp_path))
    assert str(path) in caught.value.message


def test_no_cases_and_no_folder_are_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match=r"holds no case|cannot read"):
            list(read_cases(folder))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write the case"):
        write_case(tmp_path / "file", case(), EXTRACTION)


def test_extraction_holds_what_extract_prints(tmp_path: Path) -> None:
    write_case(tmp_path, case(), EXTRACTION)
    assert json.loads((tmp_path / case().name / "extraction.json").read_bytes()) == EXTRACTION
