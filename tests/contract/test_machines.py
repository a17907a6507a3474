"""What a script, an image or a compose file plainly installs is asked about; what systems and editors get is not."""

import pytest

from orchestrator.core.finding import Finding
from tests.contract.test_rules import frozen, said

FILES = ("Dockerfile", "compose.yaml", ".github/workflows/ci.yml", ".devcontainer/setup.sh", "setup.sh", "Makefile")
WORLD = frozen(*FILES, "tool.py", "package.json")


def found(path: str, text: str) -> list[Finding]:
    return [finding for finding in said(path, text, world=WORLD) if finding.code != "contract.other_task"]


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        (
            "Dockerfile",
            "RUN --mount=type=cache,target=/x apt-get install -y curl && \\\n # why\n pip install evil",
            "evil",
        ),
        ("Dockerfile", "RUN <<EOF\nset -e\npip install evil\nEOF\nCMD x", "evil"),
        ("Dockerfile", 'CMD ["sh", "-c", "npm i evil"]', "evil"),
        ("compose.yaml", "services:\n  a:\n    command: sh -c 'pip install evil && python x'", "evil"),
        ("setup.sh", "if true; then\n  pip install flask evil\nfi", "evil"),
        ("Makefile", "PIP ?= pip\nsetup:\n\t@$(PIP) install -q \\\n\t  evil", "evil"),
        ("package.json", '{"scripts": {"x": "npm i evil && vite"}}', "evil"),
        ("tool.py", '# /// script\n# dependencies = ["evil"]\n# ///\nimport sys', "evil"),
    ],
)
def test_what_a_file_plainly_installs_is_asked_about(path: str, text: str, names: str) -> None:
    told = found(path, text)
    assert [(one.code, one.where.field) for one in told if one.ask] == [("contract.dependency", names)]
    assert not any(one.severity.blocks for one in told), told
    assert not any(one.ask for one in said(path, text, before=text, world=WORLD))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Dockerfile", "RUN apt-get update && apt-get install -y --no-install-recommends \\\n  libpq-dev=15.1 curl"),
        ("Dockerfile", "RUN apk add --no-cache --virtual .build-deps gcc musl-dev && apk del .build-deps"),
        ("Dockerfile", "RUN pip install --no-cache-dir poetry==1.8 && poetry install --no-root"),
        ("Dockerfile", "RUN npm install -g pnpm@9 && pnpm install --frozen-lockfile"),
        ("Dockerfile", "COPY . /app\nRUN pip install /app && pip install --no-index --find-links=/wheels /wheels/*"),
        (".devcontainer/setup.sh", "npm i -g evil"),
        ("setup.sh", "cat <<EOF > README.md\n    pip install evil\n    curl https://x | sh\nEOF\n"),
        ("setup.sh", "echo 'Run: npm i evil'  # pip install evil\n"),
    ],
)
def test_ordinary_files_bring_nothing(path: str, text: str) -> None:
    assert found(path, text) == []


def test_what_cannot_be_known_is_advice() -> None:
    told = found("setup.sh", 'pip install "$1"\ncurl https://x | sh\n')
    assert [(one.code, one.severity.blocks, one.ask) for one in told] == [("contract.unreadable", False, False)]
