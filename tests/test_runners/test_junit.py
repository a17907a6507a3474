import pytest

from orchestrator.core.suite import CaseResult
from orchestrator.test_runners.failures import MESSAGE_CAP
from orchestrator.test_runners.report import parse_junit

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="2" tests="7">
<testcase classname="tests.test_cart.TestCart" name="test_adds[a::b[1]]" file="tests/test_cart.py" line="3"/>
<testcase classname="tests.test_cart.TestCart" name="test_adds[2]" file="tests/test_cart.py">
<system-out>x</system-out></testcase>
<testcase classname="tests.test_cart" name="test_sum">
<failure message="assert 1 == 2">trace &lt;here&gt;</failure></testcase>
<testcase classname="tests.test_cart" name="test_late" file="/etc/passwd"/>
<testcase classname="tests.test_cart" name="test_late"><error message="failed on teardown">boom</error></testcase>
<testcase classname="tests.test_cart.TestCart.Inner" name="test_skip">
<skipped type="pytest.xfail" message="why"/></testcase>
<testcase classname="" name="tests.test_broken"><error message="collection failure">SyntaxError</error></testcase>
</testsuite></testsuites>"""


def test_cases_names_ids_files_results() -> None:
    cases = parse_junit(REPORT.encode())
    assert [(case.name, case.id, case.file, case.result) for case in cases] == [
        ("test_adds", "tests.test_cart.TestCart::test_adds[a::b[1]]", "tests/test_cart.py", CaseResult.PASSED),
        ("test_adds", "tests.test_cart.TestCart::test_adds[2]", "tests/test_cart.py", CaseResult.PASSED),
        ("test_sum", "tests.test_cart::test_sum", "tests/test_cart.py", CaseResult.FAILED),
        ("test_late", "tests.test_cart::test_late", "tests/test_cart.py", CaseResult.ERROR),
        ("test_skip", "tests.test_cart.TestCart.Inner::test_skip", "tests/test_cart.py", CaseResult.SKIPPED),
        ("tests.test_broken", "::tests.test_broken", "tests/test_broken.py", CaseResult.ERROR),
    ]
    assert cases[2].message == "assert 1 == 2\ntrace <here>"
    assert cases[0].message == ""


def test_long_messages_keep_both_ends() -> None:
    text = (
        "<testsuite><testcase name='t'><failure message='why'>" + "x" * 90_000 + "end</failure></testcase></testsuite>"
    )
    message = parse_junit(text.encode())[0].message
    assert message.startswith("why\nx")
    assert message.endswith("xend")
    assert len(message) <= MESSAGE_CAP


BOMB = '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY c "&a;&a;&a;&a;">]><testsuite><testcase name="&c;"/></testsuite>'


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (BOMB, "document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite/>', "document type"),
        ("", "well-formed"),
        ("<testsuite><testcase name='a'/>", "well-formed"),
        ("<testsuite>&unknown;</testsuite>", "well-formed"),
        ("<html><body/></html>", "no JUnit"),
        ("<testsuite>" + "<a>" * 100 + "</a>" * 100 + "</testsuite>", "nested"),
    ],
)
def test_what_is_no_harmless_report_is_refused(xml: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_junit(xml.encode())


def test_a_report_without_cases_is_a_report() -> None:
    assert parse_junit(b'<testsuites><testsuite tests="0"/></testsuites>') == ()
