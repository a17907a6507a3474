"""Names behind an installing verb; words of other commands are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.installs import read_installs


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pip install Flask>=2 'uvicorn[standard]==0.3' 'x; python_version > \"3\"'", "flask uvicorn x"),
        ("python3.11 -I -m pip --quiet install -r requirements.txt -U foo_bar", "foo-bar"),
        ("uv add httpx --group dev && uv pip install rich; uv tool install x", "httpx rich x"),
        ("poetry add -G dev x && pdm add y; pipenv install z; poetry run pip install v", "x y z v"),
        ("conda install -c conda-forge x", "x"),
        ("cd web && npm i -D express@^4 @types/node@1; yarn add left-pad", "express @types/node left-pad"),
        ("npm --prefix web install x --save-dev; pnpm --filter web add chalk; (cd a; npm i b)", "x chalk b"),
        ("bun add b; deno add npm:@s/z", "b @s/z"),
        (
            "cargo add serde; go install example.org/x/cmd/y@latest; gem install rails -v 7",
            "serde example.org/x/cmd/y rails",
        ),
        ("X=1 sudo -u me pip3 install x; if true; then timeout -k 1 60 npm i y; fi", "x y"),
        ("sh -ec 'pip install x'; bash -lc \"npm i y\"; echo $(pip install z)", "x y z"),
        ("npm i x \\\n  y>log 2>&1 # npm i z\nnpm i q", "x y q"),
        ("$PIP install x; ${PYTHON:-python} -m pip install y; $VENV/bin/pip install z", "x y z"),
        ("pip install git+https://host/a.git", "git+https://host/a.git"),
        ("npm i user/repo", "user/repo"),
        ("pip install --index-url=https://host/s x", "--index-url https://host/s x"),
        ("pip install --extra-index-url https://host/s x | tee log", "--extra-index-url https://host/s x"),
        ("apt-get install -y curl=8 && apk add --virtual .x gcc && brew install jq", "curl gcc jq"),
    ],
)
def test_install_commands_name_their_packages(command: str, names: str) -> None:
    found = read_installs(command)
    assert (" ".join(found.packages), found.unclear) == (names, ())


@pytest.mark.parametrize(
    "command",
    [
        "uv run --group dev tox run -e typing",
        "npm i --lockfile-version 3",
        "npx http-server -p 9001; npx --no-install eslint .; uvx ruff check; pnpm dlx x",
        "npm ci && npm run build && pip install -e . ./x .[dev] dist/*.whl && npm install && uv pip sync x",
        "echo npm install x; command -v npm; grep 'a; npm i x' f; pip uninstall x; pip list",
        "pip install -r requirements/dev.txt -c c.txt --no-binary x",
        "install -m 755 x y; git add x; make install; brew --prefix x; go get ./...",
        "npm i 'x",
    ],
)
def test_other_words_are_no_packages(command: str) -> None:
    assert read_installs(command) == ((), ())


@pytest.mark.parametrize(
    "command", ["pip install $WHAT", "npm i $(cat list)", "npm i `cat list`", "for p in a b; do pip install $p; done"]
)
def test_what_cannot_be_read_plainly_is_unclear(command: str) -> None:
    assert read_installs(command).unclear


@given(st.text(alphabet="np mi'\"\\$()`;&|<>#\n{}ab-=EOF", max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    read_installs(f"npm i {text}")
