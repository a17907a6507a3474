"""deploy/compose.yaml and deploy/kubernetes.yaml, held against the code: names, paths, times."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.settings import Settings, load
from tests.deploy.recipe import ROOT

FILLED = "x" * 16
SECRETS = {"DATABASE_URL", "ORCHESTRATOR_TOKEN", "ORCHESTRATOR_MASK_KEY", "ANTHROPIC_API_KEY", "GIT_TOKEN"}


def compose() -> Any:
    return yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())


def kubernetes() -> tuple[Any, Any, str]:
    text = (ROOT / "deploy/kubernetes.yaml").read_text()
    deployment, service = yaml.safe_load_all(text)
    return deployment, service, text


def container() -> Any:
    (only,) = kubernetes()[0]["spec"]["template"]["spec"]["containers"]
    return only


@pytest.mark.parametrize("variables", [
    compose()["services"]["daemon"]["environment"],
    {one["name"]: one["value"] for one in container()["env"]} | dict.fromkeys(SECRETS, FILLED),
], ids=["compose", "kubernetes"])  # fmt: skip
def test_the_daemon_gets_what_it_needs_by_names_that_exist(variables: Mapping[str, str], tmp_path: Path) -> None:
    assert variables.keys() >= SECRETS
    filled = {name: re.sub(r"\$\{.*?\}", FILLED, value) for name, value in variables.items()}
    settings, environment = load(variables=filled, cwd=tmp_path)
    assert (settings.provider.name, settings.serve.push_to) == ("anthropic", "sprints/{sprint}")
    assert settings.serve.repo
    assert environment.token == FILLED


def test_two_daemons_without_a_volume_of_their_own_get_the_time_to_end() -> None:
    daemon = compose()["services"]["daemon"]
    assert daemon["deploy"]["replicas"] == 2
    assert "volumes" not in daemon
    needed = Settings().shutdown.grace_s + 15
    assert needed <= int(daemon["stop_grace_period"].removesuffix("s"))
    pod = kubernetes()[0]["spec"]["template"]["spec"]
    assert needed <= pod["terminationGracePeriodSeconds"]
    assert kubernetes()[0]["spec"]["replicas"] == 2
    assert pod["volumes"] == [{"name": "state", "emptyDir": {}}]
