"""Settings: --set before environment before file before default; what is wrong is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.settings import Settings, load, packaged


def loaded(folder: Path, *overrides: str, text: str | None = None, **variables: str) -> Settings:
    if text is not None:
        (folder / "config.yaml").write_text(text, encoding="utf-8")
    return load(None, overrides, variables, folder)[0]


def test_the_packaged_default_is_the_default_of_every_name(tmp_path: Path) -> None:
    assert loaded(tmp_path) == Settings()


def test_the_order_of_sources(tmp_path: Path) -> None:
    text = "test:\n  max_attempts: 4\n  mode: smoke\nplan: {max_iterations: 4}\n"
    settings = loaded(
        tmp_path,
        "test.max_attempts=6",
        text=text,
        ORCHESTRATOR_TEST__MAX_ATTEMPTS="5",
        ORCHESTRATOR_PLAN__MAX_ITERATIONS="5",
    )
    assert (settings.test.max_attempts, settings.plan.max_iterations) == (6, 5)
    assert settings.test.mode == "smoke"
    assert settings.build.max_attempts == 3


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("test.max_atempts=3", "unknown configuration name test.max_atempts; did you mean test.max_attempts?"),
        ("gate.timeout_s=1e400", "gate.timeout_s: .*less than or equal to 316224000"),
        ("commands.install_env=[PIP_CERT, NPM_TOKEN]", "NPM_TOKEN holds a secret, which no command may see"),
        ("tests.mode=smoke", "unknown configuration name tests"),
        ("test.max_attempts=0", "test.max_attempts: .*greater than or equal to 1"),
        ("test.max_attempts=many", "test.max_attempts.*got 'many'"),
        ("test.mode=loud", "test.mode"),
        ("test.max_attempts", "write it as --set name.of.setting=VALUE"),
        ("=3", "write it as"),
        ("test.mode=[", "--set test.mode, line 1: not valid YAML"),
        ("test=3", "configuration test"),
        ("test..mode=smoke", "unknown configuration name"),
        ("personas.ann.modle=m", "unknown configuration name personas.ann.modle; did you mean personas.ann.model?"),
        ("personas.ann=openai", "configuration personas.ann holds names and values, not 'openai'"),
        ("personas.ann.provider=gpt", "configuration personas.ann.provider"),
        ("prices={m: {input: 1}}", "configuration prices.m.output"),
        ("prices={m: {input: .inf, output: 1}}", "configuration prices.m.input"),
        ("budget.usd_per_day=inf", "configuration budget.usd_per_day"),
        ("prices={m: {input: -1, output: 1}}", "configuration prices.m.input"),
    ],
)
def test_a_bad_override_is_one_clear_sentence(tmp_path: Path, override: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        loaded(tmp_path, override)


def test_scalars_are_read_as_yaml_1_2(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        "personas.ann.model=on",
        "test.timeout_s=012",
        "budget.usd_per_sprint=1e1",
        text="gate: {timeout_s: ~}\n",
    )
    assert settings.personas["ann"].model == "on"
    assert settings.test.timeout_s == 12
    assert (settings.gate.timeout_s, settings.budget.usd_per_sprint) == (None, 10.0)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a: " + b"[" * 5000 + b"]" * 5000, r"config.yaml: its values are nested too deeply"),
        (b"test: [\n", r"config.yaml, line \d: not valid YAML"),
        (b"- a\n", "must be a mapping"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"test: {mode: auto, mode: smoke}", r"line 1: not valid YAML \('mode' stands twice\)"),
        (b"nonsense: 1\n", "unknown configuration name nonsense$"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=told):
        load(None, (), {}, tmp_path)


def test_a_config_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read configuration"):
        load(tmp_path / "none.yaml", (), {}, tmp_path)


def test_an_empty_file_changes_nothing_and_tags_run_no_code(tmp_path: Path) -> None:
    assert loaded(tmp_path, text="# nothing\n") == Settings()
    with pytest.raises(ConfigError):
        loaded(tmp_path, text="test: !!python/object/apply:os.system ['true']\n")


def test_unknown_variables_of_ours_are_errors_and_others_are_not(tmp_path: Path) -> None:
    assert loaded(tmp_path, ORCHESTRATOR_HOME="x", PATH="y", A__B="z") == Settings()
    with pytest.raises(ConfigError, match=r"test.max_atempts"):
        loaded(tmp_path, ORCHESTRATOR_TEST__MAX_ATEMPTS="3")


def test_where_the_state_folder_is(tmp_path: Path) -> None:
    inside = tmp_path / "project"
    inside.mkdir()
    file = inside / "other.yaml"
    file.write_text("test: {mode: smoke}\n")
    settings, environment = load(file, (), {}, tmp_path)
    assert settings.test.mode == "smoke"
    assert (environment.home, environment.base_dir) == (inside / ".orchestrator", inside)
    _, elsewhere = load(file, (), {"ORCHESTRATOR_HOME": str(tmp_path / "home"), "DATABASE_URL": ""}, tmp_path)
    assert (elsewhere.home, elsewhere.database_url) == (tmp_path / "home", None)
    volume = {"RAILWAY_VOLUME_MOUNT_PATH": str(tmp_path / "volume")}
    assert load(file, (), volume, tmp_path)[1].home == tmp_path / "volume/.orchestrator"
    assert load(file, (), {**volume, "ORCHESTRATOR_HOME": str(inside)}, tmp_path)[1].home == inside
    _, bare = load(None, (), {}, tmp_path)
    assert bare.home == tmp_path / ".orchestrator"
    assert bare.config_file is None


@pytest.mark.parametrize(
    ("variables", "user"),
    [
        ({"LOGNAME": "anna", "USER": "root"}, "anna"),
        ({"LOGNAME": " \n", "USER": "bob"}, "bob"),
        ({"USER": "a\x1b[1mn\nna\udcff"}, "a [1mn na"),
        ({"USER": "x" * 500}, "x" * 80),
    ],
)
def test_who_gives_a_command(tmp_path: Path, variables: dict[str, str], user: str) -> None:
    assert load(None, (), variables, tmp_path)[1].user == user
    assert load(None, (), {}, tmp_path)[1].user


def test_variables_do_not_show_in_a_representation(tmp_path: Path) -> None:
    _, environment = load(None, (), {"ANTHROPIC_API_KEY": "sk-secret"}, tmp_path)
    assert "sk-secret" not in repr(environment)


@pytest.mark.parametrize("name", ["system_prompts", "contracts", "examples", "config.yaml"])
def test_packaged_files_are_there(name: str) -> None:
    assert packaged(name).exists()


def test_secrets_are_taken_out_of_the_process_environment_and_of_what_the_kernel_shows_of_it() -> None:
    program = """
import os, subprocess, sys
from orchestrator.settings import forget_secrets, load
from pathlib import Path
settings, environment = load(None, (), None, Path("/"))
forget_secrets()
shown = Path("/proc/self/environ").read_text() if sys.platform == "linux" else ""
child = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
print(environment.variables["OPENAI_API_KEY"], [name for name in os.environ if "KEY" in name or "DATABASE" in name])
print([value in shown + child for value in ("a-secret-key", "pa55word", "kept-as-it-is")])
"""
    variables = {
        "OPENAI_API_KEY": "a-secret-key",
        "DATABASE_URL": "x://u:pa55word@h/d",
        "OTHER": "kept-as-it-is",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env={**variables, "PATH": os.environ["PATH"]},
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["a-secret-key []", "[False, False, True]"]


def test_what_would_keep_us_waiting_is_no_configuration_and_a_pipe_of_ours_is_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match="it is no file"):
            load(path, (), {}, tmp_path)
    ours, other = os.pipe()
    try:
        os.write(other, b"concurrency: {turns: 3}\n")
        os.close(other)
        settings, environment = load(Path(f"/dev/fd/{ours}"), (), {}, tmp_path)
    finally:
        os.close(ours)
    assert settings.concurrency.turns == 3
    assert (environment.base_dir, environment.home) == (tmp_path, tmp_path / ".orchestrator")
