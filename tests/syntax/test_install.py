"""Packages a command line would install, however it is dressed up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.syntax.install import FROM_INPUT, install_targets


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pip install Flask>=2 'uvicorn[standard]==0.3'", "flask uvicorn"),
        ("python3.11 -I -m pip --quiet install -r requirements.txt -U foo_bar", "foo-bar"),
        ("python -W ignore -mpip install x", "x"),
        ("pip install 'x; python_version > \"3\"'", "x"),
        ("uv add httpx --group dev && uv pip install rich", "httpx rich"),
        ("uv tool install x; uvx --from y z; uv run -p 3.12 --with w tool", "x y w"),
        ("poetry add -G dev x && pdm add y; pipenv install z; rye add v", "x y z v"),
        ("poetry run pip install x; conda run -n e pip install y", "x y"),
        ("conda install -c conda-forge x; mamba create -n e y", "x y"),
        ("pipx run black .; easy_install x", "black x"),
        ("npm install -f express", "express"),
        ("cd web && npm i -D express@^4 @types/node@1; yarn add left-pad", "express @types/node left-pad"),
        ("npm --prefix web install x --save-dev=true", "x"),
        ("pnpm --filter web add chalk; yarn workspace web add x; bun add y; deno add npm:@s/z", "chalk x y @s/z"),
        ("npx --yes create-thing my-app; pnpm dlx a b; bunx c; npm exec -- d e", "create-thing a c d"),
        ("npx -p cowsay -c 'npm i x'; npx --package=y z", "cowsay x y"),
        ("npx tsc --noEmit; npx --no-install eslint .", "typescript"),
        ("npm init vite@4 app; yarn create @s/x; npm create @s; npm init -y", "create-vite @s/create-x @s/create"),
        ("X=1 sudo -u me pip3 install x", "x"),
        ("env -i A=b timeout -k 1 60 nice -n 5 npm i x; env -S 'pip install y'", "x y"),
        ("if true; then npm i x; fi; ! { pip install y; }", "x y"),
        ("sh -ec 'pip install sneaky'; bash -lc \"npm i x && su -c 'pip install y'\"", "sneaky x y"),
        ("eval 'npm i x'; sh -c npm\\ i\\ y", "x y"),
        ("RUN pip install y", "y"),
        ("echo $(pip install q) \"`npm i r`\" <(npm i s)", "q r s"),
        ("n'p'm i x \\\n  y # npm i z\n/usr/bin/npm i v", "x y v"),
        ("npm i x>log 2>&1 <in", "x"),
        ("python -c \"import subprocess; subprocess.run(['pip', 'install', 'x'])\"", "x"),
        ("node -e \"require('child_process').execSync('npm i x')\"", "x"),
        ("npm ci && npm run build && pip install -e . ./x && python -m pytest && npm install && uv sync && yarn", ""),
        ("echo npm install x; command -v npm; grep 'a; npm i x' f; pip install -r requirements/dev.txt -c c.txt", ""),
    ],
)  # fmt: skip
def test_install_commands_name_their_packages(command: str, names: str) -> None:
    assert install_targets(command) == tuple(names.split())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("pip install git+https://host/A.git", "git+https://host/a.git"),
        ("pip install -e git+https://host/a.git", "git+https://host/a.git"),
        ("npm i git+ssh://host/a", "git+ssh://host/a"),
        ("npm i user/repo", "user/repo"),
        ("npm i file:../x", "file:../x"),
        ("pip install /tmp/x", "/tmp/x"),
        ("pip install -r notes.txt", "-r notes.txt"),
        ("pip install -rhttps://host/r.txt", "-r https://host/r.txt"),
        ("npm i $WHAT", "$what"),
        ("npm i $(cat list)", "$(…)"),
        ("cat list | xargs -n 1 npm i", FROM_INPUT),
        ("pip install 'open quote", "open quote"),
    ],
)
def test_what_has_no_name_is_told_and_never_passes(command: str, told: str) -> None:
    assert " ".join(install_targets(command)) == told


def test_another_index_is_told_beside_the_package() -> None:
    assert install_targets("pip install --index-url=https://host/s x") == ("x", "--index-url https://host/s")


@given(st.text(alphabet="np mi'\"\\$()`;&|<>#\n{}ab", max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    install_targets(text)
