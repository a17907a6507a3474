"""docs/railway.md: every variable in its table is read by the code, and every one that the code reads is in it."""

import re

import pytest

from orchestrator.cli.main import COMMANDS
from orchestrator.core.errors import ConfigError
from orchestrator.settings import load
from tests.deploy.recipe import ROOT, railway

pytestmark = pytest.mark.docs

GUIDE = (ROOT / "docs/railway.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`.*?`) \|", re.MULTILINE)
NOT_FOR_A_DAEMON = {"PATH", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "ORCHESTRATOR_URL"}
NOT_FOR_A_DAEMON |= {"HOME", "PIP_TRUSTED_HOST", "NPM_CONFIG_USERCONFIG"}  # of the machine: pip's and npm's own
NOT_FOR_A_DAEMON |= {"PIP_CONFIG_FILE", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME"}


def table(head: str) -> list[str]:
    """Names in the first column of the table with this head."""
    body = GUIDE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [name for row in ROW.findall(body) for name in re.findall(r"`(\w+)`", row)]


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "orchestrator").rglob("*.py")))


def is_setting(name: str) -> bool:
    try:
        load(None, [f"{name}=[]"], {})
    except ConfigError as error:
        return not error.message.startswith("unknown")
    return True


def test_every_variable_of_the_table_is_read_by_the_code() -> None:
    names, code = table("variable"), sources()
    elsewhere = {"ORCHESTRATOR_HOME", "ORCHESTRATOR_TOKEN"}  # by their endings
    elsewhere |= {f"{name}_{what}" for name in ("ANTHROPIC", "OPENAI") for what in ("API_KEY", "BASE_URL")}
    elsewhere |= {name for name in names if name.startswith("OTEL_")}  # by OpenTelemetry itself
    settings = {name: name.removeprefix("ORCHESTRATOR_").lower().replace("__", ".") for name in names if "__" in name}
    budgets = {"__CALLS_PER_SPRINT": "budget.calls_per_sprint", "__TOKENS_PER_SPRINT": "budget.tokens_per_sprint"}
    assert all(is_setting(name) for name in (settings | budgets).values())
    assert [name for name in names if name not in elsewhere | {*settings} and f'"{name}"' not in code] == []


def test_every_variable_that_the_code_reads_is_in_the_table() -> None:
    code = sources()
    named = set(re.findall(r"(?:environ|variables)(?:\.get\(|\[)\"([A-Z_]+)\"", code))
    named |= {f"ORCHESTRATOR_{name}" for name in re.findall(r"\{ENV_PREFIX\}([A-Z]+)", code)}
    named |= set(re.findall(r"\"(GIT_(?:TOKEN|SSH_KEY))\"", code))
    named -= {"NPM_CONFIG_BEFORE", "PIP_UPLOADED_PRIOR_TO", "XDG_STATE_HOME"}  # of tools, or where trust is kept
    assert named - NOT_FOR_A_DAEMON <= set(table("variable"))
    assert {"PORT", "DATABASE_URL", "ORCHESTRATOR_TOKEN", "GIT_TOKEN"} <= named


@pytest.mark.parametrize("name", re.findall(r"`((?:[a-z]+\.)+[a-z_]+)`", GUIDE))
def test_settings_and_files_that_are_named_exist(name: str) -> None:
    assert (ROOT / name).exists() or is_setting(name)
    assert not is_setting("retention.weeks")


def test_commands_that_are_named_exist() -> None:
    named = set(re.findall(r"\borchestrator ([a-z]+)\b", GUIDE))
    assert {"serve", "submit", "logs"} <= named <= set(COMMANDS)
    answers = re.search(r"`show`, (.*?) go to the daemon", GUIDE.replace("\n", " "))
    assert answers is not None
    assert set(re.findall(r"`(\w+)`", answers[1])) <= set(COMMANDS)


def test_events_that_filters_name_exist() -> None:
    named = set(re.findall(r"@event:(\w+)", GUIDE))
    assert named
    assert named <= set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/events.md").read_text(encoding="utf-8"), re.M))


def test_its_numbers_are_those_of_the_files() -> None:
    settings, deploy = load(None, (), {})[0], railway()["deploy"]
    assert f"`drainingSeconds` ({deploy['drainingSeconds']} s)" in GUIDE
    assert f"`shutdown.grace_s` ({settings.shutdown.grace_s:g} s)" in GUIDE
    assert f"`commands.memory_mb` ({settings.commands.memory_mb})" in GUIDE
    assert f"`{deploy['restartPolicyType']}` with {deploy['restartPolicyMaxRetries']} tries" in GUIDE
    assert f"`overlapSeconds` {deploy['overlapSeconds']})" in GUIDE
