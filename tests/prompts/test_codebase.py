"""A repository in a prompt: within its budget, the same each time, and what is missing is said."""

import random

import pytest

from orchestrator.core.analysis import Packed
from orchestrator.core.paths import is_private_file
from orchestrator.core.secrets import redact
from orchestrator.prompts.analysis import Source, pack
from orchestrator.prompts.budget import tokens

KEY = "ghp_" + "a1B2" * 9
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"


def packed(files: dict[str, str | None], budget: int = 5000, prd: str = "") -> Packed:
    sources = [Source(name, len((text or "").encode())) for name, text in files.items()]
    return pack(sources, files.__getitem__, redact, budget_tokens=budget, prd=prd)


def test_what_fits_is_shown_whole_by_path() -> None:
    found = packed({"b.py": "b = 1\n", "README.md": "# Shop\n", "a/x.py": "x = '```'\n"})
    assert found.shown == ("README.md", "a/x.py", "b.py")
    assert (found.cut, found.left_out, found.masked) == ((), (), ())
    assert "### a/x.py\n\n````py\nx = '```'\n````" in found.text
    assert found.tokens == tokens(found.text)


def test_a_long_file_is_cut_at_a_line_where_there_is_room() -> None:
    found = packed({"src/huge.py": "def f(): pass\n" * 3000, "a.py": "a = 1\n"}, budget=4000)
    assert [one.path for one in found.cut] == ["src/huge.py"]
    assert "[src/huge.py: cut here, " in found.text
    assert "\ndef f(): pass\n```\n[src" in found.text
    assert found.tokens <= 4000


@pytest.mark.parametrize("budget", [500, 1000, 3000, 20_000])
def test_the_budget_holds_for_any_repository(budget: int) -> None:
    rng = random.Random(budget)
    files = {
        f"d{n % 40}/f{n}.{rng.choice(['py', 'md', 'csv', 'ts'])}": "line\n" * rng.randrange(800) for n in range(400)
    }
    found = packed(files, budget=budget)
    assert found.tokens <= budget


def test_binaries_and_secrets_stay_out() -> None:
    files = {
        "logo.png": "x", "notes.txt": None, ".env": f"KEY={KEY}", "deploy/server.pem": PEM, "keys.py": f"'{PEM}'",
        "config.py": f"TOKEN = '{KEY}'\n", ".env.example": "KEY=\n",
    }  # fmt: skip
    found = packed(files)
    assert {one.path: one.why for one in found.left_out} == {
        "logo.png": "binary", "notes.txt": "no text, or too long", ".env": "secret", "deploy/server.pem": "secret",
        "keys.py": "secret",
    }  # fmt: skip
    assert found.masked == ("config.py",)
    assert KEY not in found.text
    assert "MIIE" not in found.text
    assert ".env.example" in found.shown


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env.local", "id_rsa", "x/server.key", "secrets.yaml", "service-account-prod.json", "prod.tfvars"],
)
def test_files_of_secrets_are_known_by_name(path: str) -> None:
    assert is_private_file(path)


def test_what_the_requirements_speak_of_goes_first() -> None:
    files = {f"src/{name}.py": "x = 1\n" * 300 for name in ("billing", "alpha", "beta", "gamma")}
    found = packed(files, budget=2000, prd="Billing comes first. Billing sends invoices.")
    assert "src/billing.py" in {*found.shown, *(one.path for one in found.cut)}
