"""Secrets are known by their shapes, stand under a name in prompts, and come back only to where they were."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.core.secrets import (
    Masks,
    env_values,
    is_secret_name,
    masks_in,
    redact,
    redacted,
    secrets_in,
    secrets_of,
)

ROOT = Path(__file__).parents[2]
MASKS = Masks(key=b"k" * 32)
LINES = ("MIIEowIBAAKCAQEAx4K9z3Jf8vQ2abcDEF12345", "q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8l9Z0")
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{LINES[0]}\n{LINES[1]}\n-----END RSA PRIVATE KEY-----\n"
SECRETS = {
    'key = "sk-ant-api03-AbQd1934efGh5678ijKl9012mnOp"': "sk-ant-api03-AbQd1934efGh5678ijKl9012mnOp",
    "a ghp_16C7e42F292c6912E7710c838347Ae178B4a b": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "id: AKIAQ7XW3PL2M9VB4KZD": "AKIAQ7XW3PL2M9VB4KZD",
    'aws_secret_access_key = "wJalrXUtnF3MI7K9MDENGbPxRfiCY8sK2LqPz0Wd"': "wJalrXUtnF3MI7K9MDENGbPxRfiCY8sK2LqPz0Wd",
    "xoxb-723456789012-8234567890123-Zb9dQfGhIjKlMnOp": "xoxb-723456789012-8234567890123-Zb9dQfGhIjKlMnOp",
    KEY: f"{LINES[0]}\n{LINES[1]}",
    KEY.replace("\n", "\\n"): f"{LINES[0]}\\n{LINES[1]}",
    KEY.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB12\n\n", 1): "\n".join(LINES),
    f"KEY=-----BEGIN PRIVATE KEY----- Proc-Type: 4,ENCRYPTED DEK-Info: AES-128-CBC,AB12 {LINES[1]} -----END": LINES[1],
    "".join(f"+{line}\n" for line in KEY.splitlines()): f"{LINES[0]}\n+{LINES[1]}",
    "t=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI5ODc2NTQzMiIsImEiOjF9.dozjgNryP4J3jVmNHl0w5N_XgL0n3": (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI5ODc2NTQzMiIsImEiOjF9.dozjgNryP4J3jVmNHl0w5N_XgL0n3"
    ),
    "postgres://app:hunter2pw@db.internal:5432/x": "hunter2pw",
    "redis://:Zx81!kdf@cache:6379/0": "Zx81!kdf",
    "PORT=8000\nDB_PASSWORD=horse-battery\n": "horse-battery",
    "+export STRIPE_SECRET='abq9des8ghi7'\n": "abq9des8ghi7",
    "SECRET_KEY = 'k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9p0'": "k3j4h5g6f7d8s9a0q1w2e3r4t5y6u7i8o9p0",
    'const apiKey = "A1b2C3d4E5f6G7h8I9j0K1l2"': "A1b2C3d4E5f6G7h8I9j0K1l2",
    '{"client_secret": "9f8e7d6c5b4a39281706f5e4d3c2b1a0"}': "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "Authorization: Bearer 9f8e7d6c5b4a39281706f5e4d3c2b1a0": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "[default]\naws_secret_access_key = wJalrXUtnF3MI/K7M9DENG/bPxRfiCY8\n": "wJalrXUtnF3MI/K7M9DENG/bPxRfiCY8",
    "db:\n  - password: horse4battery9staple7\n": "horse4battery9staple7",
    "//registry.test/:_authToken=9f8e7d6c5b4a39281706f5e4d3c2b1a0\n": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "GET /\r\nX-Api-Key: 9f8e7d6c5b4a39281706f5e4d3c2b1a0\r\n": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "https://9f8e7d6c5b4a39281706f5e4d3c2b1a0@host.test/a/b.git": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "postgres://app:pa@ss9word8x@db/x": "pa@ss9word8x",
    "Call it with API_TOKEN=qzxhvkwmtrpjdlfgnbcsyqzxhvkwmt and look.": "qzxhvkwmtrpjdlfgnbcsyqzxhvkwmt",
    "the password is wRtQpLkXvZbNmJhGfDsAqWeRzTyUiO, as told": "wRtQpLkXvZbNmJhGfDsAqWeRzTyUiO",
    "use `secret: 9f8e7d6c5b4a3928` here": "9f8e7d6c5b4a3928",
    "and set SMTP_PASS=Gq7hTz2wKx9pLs4v first": "Gq7hTz2wKx9pLs4v",
    'auth: {user: "app", pass: "Gq7hTz2wKx9pLs4v"}': "Gq7hTz2wKx9pLs4v",
}
"""A text → the secret in it."""
HARMLESS = [
    'password = os.environ["DB_PASSWORD"]',
    'token = request.headers["X-Token"]',
    "API_KEY=$API_KEY",
    "API_KEY=<your key>",
    "API_KEY=${{ secrets.API_KEY }}",
    "https://user:password@host/x",
    "postgres://postgres:postgres@localhost/x",
    '"password": "correct horse battery"',
    'const token = "access_token_header_name"',
    "TOKEN_URL=https://example.org/token",
    "sk-fading-circle sk-circle-fade-dot-one-two",
    "SECRET_KEY=changeme123",
    "sha256:9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0",
    '"integrity": "sha512-9f8e7d6c5b4a39281706f5e4d3c2b1a0=="',
    f"-----BEGIN CERTIFICATE-----\n{LINES[0]}\n",
    f"-----BEGIN PUBLIC KEY-----\n{LINES[0]}\n",
    'if text.startswith("-----BEGIN PRIVATE KEY-----"): raise ValueError("a key is no certificate and stays here")',
    "-----END RSA PRIVATE KEY-----\n\nAKIAIOSFODNN7EXAMPLE\ncommit 9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "PRIMARY_KEY=user_identifier",
    'compass = "9f8e7d6c5b4a3928", bypass: 9f8e7d6c5b4a3928',
    "http://[::1]:8000/a@b",
    "https://example.org/a:b@c",
    "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    'private_key = load_key("path/to/private/key.pem")',
    "AKIAIOSFODNN7EXAMPLE",
    "API_KEY=MASKED_SECRET_0123456789ab",
    "SORT_KEY=created_at_2\nUSER_CACHE_KEY=users:list:v2\nFOREIGN_KEY=table2.user_id\n",
    "PASSWORD_HASHER=argon2id_v13\nTOKEN_ISSUER=auth2.internal\nMAX_TOKEN_BUDGET=81920000\n",
    "POSTGRES_PASSWORD=app_password\nDB_PASSWORD=postgres123\nADMIN_PASSWORD=admin-secret1\n",
    '<div class="sk-folding-cube-loader-12"><i class="sk-circle-fade-dot-10 sk-child"></i></div>',
    "password = getpass()\ntoken = make_token(b64decode(raw9a8b7c6d))\ntoken: Optional[str] = None\n",
    'token = "userAccessTokenRepositoryFactory"\n',
    "login(password=hashedPasswordValue2(x), token=tokens9a8b7c6d5e4f3[0], secret=load9a8b7c6d5e4f3.value(x))",
    "the token is tokens.access_token_of_the_user and the password is required-by-the-form-here",
    "http://localhost:8080/users/@me git@github.test:team/shop2go.git",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS.items(), ids=lambda value: value[:24])
def test_a_secret_is_masked_comes_back_to_its_file_and_is_shown_nowhere(text: str, secret: str) -> None:
    assert [text[one.start : one.end] for one in secrets_in(text)] == [secret]
    masked = MASKS.masked(text)
    assert masked == text.replace(secret, MASKS.name(secret))
    assert MASKS.masked(masked) == masked
    assert MASKS.restored(masked, text) == (text, ())
    assert secret not in redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert MASKS.masked(text) == text


@pytest.mark.parametrize("joined", ["=", ":", ":=", "=>", " = ", "\t:\t", "= r", "=B", ": u", "' = "])
@pytest.mark.parametrize("quote", "'\"")
def test_a_quoted_value_is_a_secret_however_it_is_assigned(joined: str, quote: str) -> None:
    text = f"x = 1\nuser_token{joined}{quote}9f8e7d6c5b4a3928{quote} # é\n"
    assert [text[one.start : one.end] for one in secrets_in(text)] == ["9f8e7d6c5b4a3928"]


def test_a_text_that_held_no_secret_is_read_again_once_it_holds_one() -> None:
    plain = "x = 1\n" * 50
    assert secrets_in(plain) == secrets_in(plain) == ()
    assert len(secrets_in(plain + next(iter(SECRETS)))) == len(secrets_in(plain + next(iter(SECRETS)))) == 1


def test_messages_keep_words_that_only_begin_like_a_key() -> None:
    told = (
        "ui/task-management-page.ts, disk-usage-monitoring-tool, desk-booking-calendar-view and sk-fading-circle-small"
    )
    assert redact(told) == told
    assert redact("key sk-plain-key-nobody-1-sees") == "key [redacted]"


def test_ordinary_sources_hold_none() -> None:
    files = [
        path for folder in ("orchestrator", "docs", "examples", "contracts") for path in (ROOT / folder).rglob("*")
    ]
    texts = {path: path.read_text() for path in files if path.suffix in {".py", ".md", ".json", ".csv", ".mjs"}}
    assert {path.name: secrets_in(text) for path, text in texts.items() if secrets_in(text)} == {}


def test_a_secret_is_put_back_where_it_was_and_nowhere_else() -> None:
    one, two = 'A_TOKEN = "k3j4h5g6f7d8s9a0q1w2"\n', 'B_TOKEN = "z3x4c5v6b7n8m9l0k1j2"\n'
    masked = MASKS.masked(one + two)
    moved = "".join(reversed(masked.splitlines(keepends=True)))
    assert MASKS.restored(moved, one + two) == (two + one, ())
    text, unknown = MASKS.restored(masked, one)
    assert (masks_in(text), unknown) == (unknown, (MASKS.name("z3x4c5v6b7n8m9l0k1j2"),))
    assert MASKS.restored(masked, None).unknown == masks_in(masked)
    assert Masks(key=b"other").restored(masked, one + two).unknown == masks_in(masked)


@pytest.mark.parametrize(
    "name", ["MASKED_SECRET_", "MASKED_SECRET_…", "MASKED_SECRET_0123456789ab", "MASKED_SECRET_XYZ"]
)
def test_a_name_that_nobody_gave_is_unknown_unless_the_file_has_it_itself(name: str) -> None:
    assert MASKS.restored(f"x = '{name}'", "x = 1").unknown
    assert MASKS.restored(f"x = '{name}'", f"y = '{name}'") == (f"x = '{name}'", ())


def test_secrets_that_are_known_are_hidden_whatever_they_look_like() -> None:
    variables = {
        "ANTHROPIC_API_KEY": "plain-old-key", "DATABASE_URL": "postgres://app:hunter2pw@db/x", "HOME": "/home/somebody",
        "SSH_AUTH_SOCK": "/tmp/agent.123", "DB_PASSWORD": "postgres", "TOKEN_URL": "https://example.org/x",
    }  # fmt: skip
    assert secrets_of(variables) == ("plain-old-key", "hunter2pw")
    masks = Masks(key=b"k", known=secrets_of(variables))
    masked = masks.masked("it is plain-old-key, postgres")
    assert masked == f"it is {masks.name('plain-old-key')}, postgres"
    assert masks.restored(masked, "it was plain-old-key") == ("it is plain-old-key, postgres", ())
    assert redacted({"plain-old-key": ["a plain-old-key", 1, None]}, secrets_of(variables)) == {
        "[redacted]": ["a [redacted]", 1, None]
    }
    assert [name for name in ("PATH", "PYTHONPATH", "API_KEY_FILE", "PUBLIC_KEY", "PWD", "BYPASS", "MY_KEY", "DB_PASS")
            if is_secret_name(name)] == ["MY_KEY", "DB_PASS"]  # fmt: skip


ENV = """\ufeffSMTP_PASS=first.of-windows
APP_NAME=Inventory
export APP_ENV=development
DEBUG=true
DB_HOST=localhost
DB_NAME=inventory_app
DB_PASSWORD=inventory_app
POSTGRES_PASSWORD=postgres
REDIS_PASSWORD=password123
CSRF_TOKEN_KEY=csrf_token
API_TOKEN_URL=https://auth.corp.test/token
SETTINGS_MODULE=inventory.settings.production
TZ=Europe/Berlin
MODEL=gpt-4o-mini-2024-07-18
RELEASED=20240101T120000Z
JWT_SECRET=${JWT_SECRET}
OTHER_TOKEN=<your token>
SERVICE_PASSWORD='Wolken$bruch(9!' # of the service
ADMIN_PASSWORD="correct horse battery staple"
TENANT=9f3c07ad51be2846
CLIENT_ID=3fa85f64-5717-4562-b3fc-2c963f66afa6
SENTRY=https://0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d@errors.corp.test/42
SHORT_TOKEN=9f3c
ORDERS=amqp://orders:Stille-Post-4@mq.corp.test/orders
STOCK=amqp://inventory:inventory@mq.corp.test/stock
AWS_SECRET_ACCESS_KEY=/wJ4lrXUtnF3M1K7MDENGbPxRf1CYqz0A7pLdT2s
SIGNING_SECRET=/run/secrets/signing_secret_2
"""


def test_of_an_env_file_what_was_generated_and_what_a_name_says_is_hidden_and_no_word_of_the_project() -> None:
    assert env_values(ENV) == (
        "first.of-windows", "Wolken$bruch(9!", "correct horse battery staple", "9f3c07ad51be2846",
        "3fa85f64-5717-4562-b3fc-2c963f66afa6", "0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d", "Stille-Post-4",
        "wJ4lrXUtnF3M1K7MDENGbPxRf1CYqz0A7pLdT2s",
    )  # fmt: skip
    masks = Masks(key=b"k", known=("9f3c07ad", "Wolken$bruch(9!"))
    assert masks.masked("id 9f3c07ad, sha 19f3c07ad2") == f"id {masks.name('9f3c07ad')}, sha 19f3c07ad2"
    assert redact('{"a": "9f3c07ad", "b": "x9f3c07ad"}', ["9f3c07ad"]) == '{"a": "[redacted]", "b": "x9f3c07ad"}'


@given(st.lists(st.sampled_from([*SECRETS, *HARMLESS, "\n", "x", "MASKED_SECRET_0", "MASKED_SECRET_"]), max_size=8))
@example([KEY, "Authorization: Bearer 9f8e7d6c5b4a39281706f5e4d3c2b1a0", "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a0"])
@example([KEY, "AKIAIOSFODNN7EXAMPLE", "sha256:9f8e7d6c5b4a39281706f5e4d3c2b1a0"])
@example(["-----BEGIN PRIVATE KEY-----", "X: Bearer 9f8e7d6c5b4a39281706f5e4d3c2b1a0", f"commit {LINES[0]}"])
@example(["-----BEGIN PRIVATE KEY-----", f"X: Y, {LINES[0]} {LINES[1]}"])
@example([f"-----BEGIN PRIVATE KEY-----X: -----BEGIN PRIVATE KEY-----{LINES[0]}-\n{LINES[1]}"])
@example(["AKIAQ7XW3PL2M9VB4KZD: 9f8e7d6c5b4a39281706f5e4d3c2b1a0"])
@example([f"{'xoxb-723456789012-Zb9dQfGhIjKlMnOp' * 4}//registry.test/:_authToken=9f8e7d6c5b4a39281706f5e4d3c2b1a0"])
def test_masking_is_undone_by_the_text_itself(parts: list[str]) -> None:
    text = "\n".join(parts)
    masked = MASKS.masked(text)
    assert MASKS.masked(masked) == masked
    assert MASKS.restored(masked, text).text == text or MASKS.restored(masked, text).unknown
