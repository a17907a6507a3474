"""The Dockerfile, .dockerignore and railway.json, held against each other and against the code."""

import re

from orchestrator.core.secrets import is_secret_name
from orchestrator.settings import Settings
from tests.deploy.recipe import ROOT, copied, instructions, railway, start_command, variables
from tests.support import git


def test_the_start_command_is_ours_alone_and_gets_the_signals() -> None:
    assert start_command() == ["orchestrator", "serve"]
    assert not [name for name, _ in instructions() if name in {"ENTRYPOINT", "ARG", "ADD"}]
    assert "preDeployCommand" not in railway()["deploy"]  # it would see no volume


def test_images_have_tags_and_no_secret_is_in_a_layer() -> None:
    images = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    assert all(re.fullmatch(r"\w+:[\d.]+-.*slim.*|\w+:[\d.]+-slim-\w+", image) for image in images)
    said = " ".join(rest for name, rest in instructions() if name == "ENV")
    assert not [word for word in re.findall(r"[A-Z_]+(?==)", said) if is_secret_name(word)]


def test_what_is_copied_is_there_and_let_through_and_a_change_of_it_deploys() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied())
    watched = {pattern.removesuffix("/**") for pattern in railway()["build"]["watchPatterns"]}
    assert watched == (set(copied()) - {"README.md", "LICENSE"}) | {"Dockerfile", ".dockerignore", "railway.json"}
    assert all(git(ROOT, "ls-files", path) for path in copied())


def test_a_deployment_waits_for_us_and_two_never_share_a_volume() -> None:
    deploy = railway()["deploy"]
    assert Settings().shutdown.grace_s + 15 <= deploy["drainingSeconds"]
    assert deploy["overlapSeconds"] == 0
    assert deploy["healthcheckPath"] == "/readyz"
    assert deploy["restartPolicyType"] == "ON_FAILURE"
    assert variables()["PYTHONUNBUFFERED"] == "1"
