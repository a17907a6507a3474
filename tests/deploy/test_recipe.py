"""The Dockerfile, .dockerignore and railway.json, held against each other and against the code."""

import json
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator.settings import Settings
from tests.audit_tool import told
from tests.deploy.recipe import ROOT, instructions, railway, variables


def test_a_deployment_waits_for_us_and_two_never_share_a_volume() -> None:
    deploy = railway()["deploy"]
    assert Settings().shutdown.grace_s + 15 <= deploy["drainingSeconds"]
    assert deploy["overlapSeconds"] == 0
    assert deploy["healthcheckPath"] == "/readyz"
    assert deploy["restartPolicyType"] == "ON_FAILURE"
    assert variables()["PYTHONUNBUFFERED"] == "1"


def test_every_package_of_the_image_has_a_version_and_hashes() -> None:
    """`make requirements` was run after a change of pyproject.toml or constraints.txt."""
    text = (ROOT / "requirements.txt").read_text()
    assert "//" not in text  # no addresses
    entries = re.findall(r"^([\w.-]+)==(\S+)[^\n]*((?:\n +--hash=sha256:[0-9a-f]{64}[^\n]*)+)", text, re.MULTILINE)
    versions = {canonicalize_name(name): version for name, version, _ in entries}
    assert len(versions) == len(re.findall(r"^\w", text, re.MULTILINE))
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    assert {name: pinned[name] for name in versions if name in pinned} == {
        name: version for name, version in versions.items() if name in pinned
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(one) for one in (*project["dependencies"], *project["optional-dependencies"]["build"])]
    assert [str(one) for one in wanted if not one.specifier.contains(versions[canonicalize_name(one.name)])] == []
    installs = [rest for name, rest in instructions(1) if name == "RUN"]
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installs)


@pytest.mark.parametrize(("packages", "good", "words"), [
    ([{"name": "a", "version": "1", "vulns": []}], True, "1 packages have no known vulnerability."),
    ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}], True, "1 are unknown"),
    ([{"name": "a", "skip_reason": "not found"}], True, "Not audited"),
    ([{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}], False, "a 1: CVE-1, "),
])  # fmt: skip
def test_an_audit_that_asked_nobody_is_not_called_clean(packages: list[object], good: bool, words: str) -> None:
    passed, said = told(json.dumps({"dependencies": packages, "fixes": []}))
    assert passed is good
    assert words in said
