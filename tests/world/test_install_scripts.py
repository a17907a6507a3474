"""Which packages may run code of their own while they are installed, by what a base commit requires and locks."""

import json
from pathlib import Path

from orchestrator.environments.base_commit import NPM, PYPI, BaseCommit, InstallScripts
from tests.support import git, make_repo
from tests.world.case import Case, table

TALKATIVE = json.dumps(
    {
        "name": "shop",
        "description": "pads a text on the left, as left-pad does, with sharp edges",
        "keywords": ["left-pad", "esbuild-loader"],
        "scripts": {"build": "node-sass src", "evil": "evil"},
        "author": {"name": "evil"},
        "dependencies": {"Left.Right": "^1.0", "@scope/thing": "1", "canvas": "npm:real@1"},
    }
)
V1 = {"lockfileVersion": 1, "dependencies": {"a": {"version": "1", "dependencies": {"deep": {"version": "2"}}}}}
V3 = {
    "packages": {
        "": {"name": "shop", "dependencies": {"a": "1"}},
        "packages/own": {"version": "1"},
        "node_modules/a": {"version": "1"},
        "node_modules/@s/b/node_modules/deep": {"version": "2"},
        "node_modules/called": {"name": "real", "version": "3"},
    }
}
PNPM = """lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      a:
        specifier: ^1.0.0
packages:
  a@1.0.0:
    deprecated: use evil@2.0.0
  '@s/b@2.0.0(c@1.0.0)':
    resolution: {integrity: x}
"""
PNPM_OLD = "packages:\n\n  /a/1.0.0:\n    dev: true\n  /@s/b/2.0.0_c@1:\n    dev: true\n"
YARN = '# yarn lockfile v1\n\n"@s/b@^1.0", "@s/b@~1.1":\n  version "1.1"\n\na@^1.0:\n  dependencies:\n    deep "^1"\n'
BERRY = '__metadata:\n  version: 8\n\n"@s/b@npm:^1.0":\n  version: 1.0\n  resolution: "@s/b@npm:1.0"\n'
UV = '[[package]]\nname = "a"\nversion = "1"\ndescription = "not evil"\n\n[[package]]\nname = "B_c"\nversion = "2"\n'


@table(
    Case(
        name="words of package.json",
        given={"package.json": TALKATIVE},
        right=("node", {"left.right", "@scope/thing", "real"}),
        seen="a description that named left-pad",
    ),
    Case(name="npm 6", given={"package-lock.json": json.dumps(V1)}, right=("node", {"a", "deep"}), seen="express"),
    Case(
        name="npm 9", given={"package-lock.json": json.dumps(V3)}, right=("node", {"a", "deep", "real"}), seen="pathe"
    ),
    Case(name="pnpm 9", given={"pnpm-lock.yaml": PNPM}, right=("node", {"a", "@s/b"}), seen="pathe"),
    Case(name="pnpm 5", given={"pnpm-lock.yaml": PNPM_OLD}, right=("node", {"a", "@s/b"}), seen="pnpm's documentation"),
    Case(name="yarn 1", given={"yarn.lock": YARN}, right=("node", {"a", "@s/b"}), seen="yarn's documentation"),
    Case(name="yarn 4", given={"yarn.lock": BERRY}, right=("node", {"@s/b"}), seen="yarn's documentation"),
    Case(
        name="bun",
        given={"bun.lock": '{"packages": {"a": ["a@1.0.0", "", {},], "x/@s/b": ["@s/b@2.0.0", "", {}]}}'},
        right=("node", {"a", "@s/b"}),
        seen="bun's documentation",
    ),
    Case(
        name="words of pyproject.toml",
        given={
            "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\ndescription = "as requests does"\n'
            'keywords = ["evil"]\ndependencies = ["a>1; python_version > \'3\'"]\n'
            '[project.optional-dependencies]\ntest = ["b"]\n[dependency-groups]\ndev = ["c[x]"]\n'
        },
        right=("python", {"a", "b", "c"}),
        seen="a keyword of a manifest",
    ),
    Case(
        name="comments of requirements",
        given={"requirements.txt": "# evil\na==1  # not other\n"},
        right=("python", {"a"}),
        seen="a comment",
    ),
    Case(name="uv", given={"uv.lock": UV}, right=("python", {"a", "b-c"}), seen="uv's documentation"),
    Case(
        name="pipenv",
        given={"Pipfile.lock": '{"_meta": {"sources": []}, "default": {"a": {"version": "==1"}}, "docs": {"b": {}}}'},
        right=("python", {"a", "b"}),
        seen="pipenv's documentation",
    ),
    Case(
        name="constraints",
        given={"constraints.txt": "a==1\n# b\n"},
        right=("python", {"a"}),
        seen="pip's documentation",
    ),
    Case(name="a broken lock", given={"uv.lock": "[[package"}, right=("python", set()), seen="a merge's markers"),
    Case(name="a lock of another shape", given={"package-lock.json": "[1]"}, right=("node", set()), seen="none"),
)
async def test_a_package_is_known_by_its_entry_alone(case: Case, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", case.given)
    facts = await BaseCommit(repo / ".git", git(repo, "rev-parse", "HEAD").strip(), repo).facts()
    kind, right = case.right
    of = {"python": (facts.python, PYPI), "node": (facts.node, NPM)}
    known, registry = of.pop(kind)
    assert {registry.plain(name) for name in known} == right
    assert [other for other, _ in of.values()] == [frozenset()], "the other registry's names are not opened"
    scripts = InstallScripts("auto", known, registry)
    assert not any(scripts.allowed(name) for name in ("left-pad", "evil", "requests", "shop", "B.C.D"))
    assert all(scripts.allowed(name) and not scripts.young(name) for name in right)


@table(
    Case(name="npm's native", given=(NPM, "sharp"), right=(True, True), seen="sharp"),
    Case(name="PyPI's native", given=(PYPI, "LXML"), right=(True, True), seen="lxml"),
    Case(name="PyPI's on npm", given=(NPM, "pandas"), right=(False, True), seen="an npm package called pandas"),
    Case(name="npm's on PyPI", given=(PYPI, "canvas"), right=(False, True), seen="a PyPI package called canvas"),
    Case(name="another spelling on npm", given=(NPM, "known_one"), right=(False, True), seen="names that differ in _"),
    Case(name="another spelling on PyPI", given=(PYPI, "Known.One"), right=(True, False), seen="PEP 503"),
)
def test_the_well_known_ones_are_those_of_their_registry_and_not_young(case: Case) -> None:
    registry, name = case.given
    scripts = InstallScripts("auto", {"known-one"}, registry)
    assert (scripts.allowed(name), scripts.young(name)) == case.right
