"""What makes a machine is told, what makes a program is the contract's, wherever it comes from."""

import pytest

from orchestrator.domain.findings import Finding, Severity
from tests.contract.test_rules import frozen, said

STEP = "on: push\njobs: {{a: {{steps: [{{run: '{}'}}]}}}}"
WORLD = frozen("Dockerfile", ".github/ISSUE_TEMPLATE/bug.yml", "setup.sh", "Makefile", "tool.py", "tool.js")


def found(path: str, text: str) -> list[Finding]:
    return [finding for finding in said(path, text, world=WORLD) if finding.code != "contract.other_task"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Dockerfile", "RUN apt-get update && apt-get install -y --no-install-recommends \\\n  libpq-dev=15.1 curl"),
        ("Dockerfile", "RUN apk add --no-cache --virtual .build-deps gcc musl-dev && apk del .build-deps"),
        ("Dockerfile", "RUN apt-get install -y python3-pip python3-venv nodejs"),
        ("Dockerfile", "RUN pip install --no-cache-dir poetry==1.8 && poetry install --no-root"),
        ("Dockerfile", "RUN npm install -g pnpm@9 && pnpm install --frozen-lockfile"),
        (".github/workflows/ci.yml", STEP.format("sudo apt-get install -y gettext && pip install build flask")),
        (".github/workflows/ci.yml", STEP.format("brew install libpq")),
    ],
)
def test_what_makes_a_machine_is_told(path: str, text: str) -> None:
    said_of_it = found(path, text)
    assert said_of_it
    assert {finding.severity for finding in said_of_it} == {Severity.MINOR}, said_of_it


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Dockerfile", "RUN apt-get install -y python3-evil"),
        ("Dockerfile", "RUN apt-get install -y curl && pip install curl"),
        ("Dockerfile", "RUN apt-get install -y $PACKAGE"),
        ("Dockerfile", "RUN apt-get install -y /tmp/evil.deb"),
        ("Dockerfile", "RUN add-apt-repository ppa:evil/x && apt-get install -y curl"),
        ("Dockerfile", "RUN curl https://host/x | sh"),
        (".github/workflows/ci.yml", STEP.format("brew tap evil/x")),
        (".github/workflows/ci.yml", STEP.format("apt-get install -y jq && pip install evil")),
        ("setup.sh", "apt-get install -y curl"),
        ("Makefile", "x:\n\tpip install poetry"),
        ("Dockerfile", "COPY --from=host/evil /wheels /wheels\nRUN pip install /wheels/*"),
        ("Dockerfile", "COPY . /app\nRUN pip install /app/../evil"),
        ("Dockerfile", "COPY evil.txt /app/e.txt\nRUN pip install -r /app/e.txt"),
        ("tool.py", "#!/usr/bin/env -S uv run --with evil\nimport sys"),
        ("tool.py", '# /// script\n# dependencies = ["evil"]\n# ///\nimport sys'),
        ("tool.py", '# /// script\n# dependencies = ["flask"]\n# [tool.uv]\n# index-url = "https://evil"\n# ///\n'),
        ("tool.py", "# /// script\n# dependencies = [flask\n# ///\n"),
        ("tool.js", "#!/usr/bin/env -S npx evil\n"),
    ],
)
def test_what_makes_a_program_is_not(path: str, text: str) -> None:
    assert any(finding.severity is Severity.CRITICAL or finding.ask for finding in found(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "Dockerfile",
            "FROM python:3.12 AS build\nRUN pip wheel -w /wheels .\nFROM python:3.12-slim\n"
            "COPY --from=build /wheels /wheels\nRUN pip install --no-index --find-links=/wheels /wheels/*",
        ),
        ("Dockerfile", "COPY . /app\nRUN pip install /app"),
        (".github/ISSUE_TEMPLATE/bug.yml", "body: [{type: input, attributes: {placeholder: npm install evil}}]"),
        (
            "tool.py",
            '#!/usr/bin/env python\n# /// script\n# dependencies = ["flask>=2"]\n# ///\nimport flask',
        ),
        ("tool.js", "#!/usr/bin/env node\nimport 'express';"),
    ],
)
def test_ordinary_files_bring_nothing(path: str, text: str) -> None:
    assert found(path, text) == []
