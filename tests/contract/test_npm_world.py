"""What npm, its relatives and TypeScript are told by files: one refused and one accepted text for each way."""
# ruff: noqa: E501  (a row of a table stays on its line)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.finding import Finding
from tests.contract.worlds import closed_world, judged

BASE = {
    "package.json": '{"name": "shop", "workspaces": ["packages/*"], "dependencies": {"react": "18", "express": "4"}}',
    "packages/ui/package.json": '{"name": "@shop/ui"}',
}
FILES = ("src/a.ts", "packages/ui/index.ts", "packages/core/index.ts")
NEW = ("packages/web/package.json", "packages/web/tsconfig.json")
LOCK = "https://registry.npmjs.org/react/-/react-18.0.0.tgz"

TEXTS = [
    (
        "package.json",
        '{"pnpm": {"overrides": {"a>evil": "1"}}}',
        "dependency",
        '{"pnpm": {"overrides": {"react": "$react"}}}',
    ),
    ("package.json", '{"overrides": {"react": "npm:evil@1"}}', "dependency", '{"overrides": null, "resolutions": {}}'),
    (
        "package.json",
        '{"workspaces": ["../evil"]}',
        "source",
        '{"workspaces": ["packages/*", "!packages/old", "./apps/a"]}',
    ),
    (
        "package.json",
        '{"workspaces": {"packages": [], "catalog": {"evil": "1"}}}',
        "dependency",
        '{"workspaces": {"packages": ["packages/*"], "catalogs": {"x": {"react": "18"}}}}',
    ),
    (
        "package.json",
        '{"packageManager": "yarn@https://host/y.js"}',
        "source",
        '{"packageManager": "pnpm@9.1.0+sha512.ab"}',
    ),
    (
        "package.json",
        '{"imports": {"#x": "evil"}}',
        "dependency",
        '{"imports": {"#x": {"node": "node:fs", "default": "./src/x.js"}, "#y/*": "./src/*.js", "#r": "react/jsx-runtime"}}',
    ),
    ("package.json", '{"imports": {"#x": ["./node_modules/evil/x.js"]}}', "dependency", '{"imports": {}}'),
    ("package.json", '{"browser": {"fs": "evil"}}', "dependency", '{"browser": {"fs": false, "./a.js": "./b.js"}}'),
    (
        "package.json",
        '{"dependencies": {"x": "file:../x"}}',
        "dependency source",
        '{"dependencies": {"react": "latest"}}',
    ),
    (
        "packages/web/package.json",
        '{"dependencies": {"x": "file:../../../x"}}',
        "dependency source",
        '{"dependencies": {"core": "file:../core", "@shop/ui": "workspace:^", "react": "catalog:"}, "devDependencies": null}',
    ),
    (
        "package.json",
        '{"dependencies": {"react": "git@host:a/b.git"}}',
        "source",
        '{"peerDependenciesMeta": {"evil": {"optional": true}}, "optionalDependencies": null, "bundleDependencies": true}',
    ),
    ("pnpm-workspace.yaml", "packages:\n  - ../evil\n", "source", "packages:\n  - packages/*\n  - '!**/test/**'\n"),
    (
        "pnpm-workspace.yaml",
        "catalogs:\n  x:\n    react: npm:evil@1\n",
        "dependency",
        "catalogs:\n  x: {express: '4'}\n",
    ),
    (
        "pnpm-workspace.yaml",
        "overrides:\n  evil: '1'\n",
        "dependency",
        "overrides:\n  react: '18'\nonlyBuiltDependencies: [x]\n",
    ),
    (
        "pnpm-workspace.yaml",
        "registry: https://host/\n",
        "source",
        "shamefullyHoist: true\nlinkWorkspacePackages: deep\n",
    ),
    ("pnpm-workspace.yaml", "a: [", "unreadable", "# nothing\n"),
    (".pnpmfile.cjs", "module.exports = {hooks: {}}", "source", ""),
    (
        ".npmrc",
        "replace-registry-host=always",
        "source",
        "engine-strict=true\nauto-install-peers=true\nsave-exact=true",
    ),
    (".npmrc", "@a:registry = https://host/", "source", "legacy-peer-deps=true\nfund=false\nnode-linker=hoisted"),
    (".npmrc", '"registry"="https://host/"', "source", "# registry=https://host/\n"),
    (".npmrc", "globalconfig=./x", "source", "shamefully-hoist=true\nlockfile=false"),
    (".npmrc", "global-pnpmfile=x.cjs", "source", "prefer-offline=true"),
    (".yarnrc", 'registry "https://host/"', "source", 'version-tag-prefix "v"'),
    (".yarnrc.yml", "npmScopes:\n  a: {npmRegistryServer: 'https://host'}\n", "source", "nodeLinker: node-modules\n"),
    (
        ".yarnrc.yml",
        "{npmRegistryServer: 'https://host'}\n",
        "source",
        "compressionLevel: mixed\nenableGlobalCache: false\n",
    ),
    ("bunfig.toml", '[install]\nregistry = "https://host"', "source", "[install]\nexact = true"),
    ("bunfig.toml", '[install.scopes]\na = "https://host"', "source", "[test]\ncoverage = true"),
    (".env", "npm_config_registry=https://host", "source", "PORT=3000\nNODE_ENV=production"),
    (
        "deno.json",
        '{"imports": {"x": "npm:evil@1"}}',
        "dependency",
        '{"imports": {"x": "npm:react@18", "y/": "./src/"}}',
    ),
    ("deno.jsonc", '{"imports": {"x": "https://host/x.ts"}} // x', "source", '{"tasks": {"dev": "deno run main.ts"}}'),
    (
        "import_map.json",
        '{"scopes": {"/a/": {"x": "https://host/x.js"}}}',
        "source",
        '{"imports": {"x": "./src/x.js"}}',
    ),
    (
        "package-lock.json",
        '{"packages": {"node_modules/x": {"resolved": "https://h.example/x.tgz"}}}',
        "source",
        '{"lockfileVersion": 3, "packages": {"": {"name": "shop", "workspaces": ["packages/*"], "dependencies": {"react": "18"}},"node_modules/@shop/ui": {"resolved": "packages/ui", "link": true}, "packages/ui": {"name": "@shop/ui"},"node_modules/react": {"version": "18.0.0", "resolved": "@LOCK@", "dependencies": {"loose-envify": "1"}},"node_modules/loose-envify": {"version": "1.0.0", "resolved": "@LOCK@"}}}',
    ),
    (
        "package-lock.json",
        '{"packages": {"node_modules/react": {"resolved": "git+ssh://git@host/a.git#1"}}}',
        "source",
        "{}",
    ),
    ("package-lock.json", '{"packages": {"node_modules/x": {"resolved": "../x", "link": true}}}', "source", "{}"),
    (
        "npm-shrinkwrap.json",
        '{"dependencies": {"react": {"version": "https://host/x.tgz"}}}',
        "source",
        '{"dependencies": {"react": {"version": "18.0.0", "resolved": "@LOCK@", "requires": {"a": "1"}}}}',
    ),
    ("package-lock.json", "{", "unreadable syntax", "{}"),
    (
        "yarn.lock",
        'react@^18:\n  version "18.0.0"\n  resolved "https://host/react.tgz#ab"\n',
        "source",
        '# yarn lockfile v1\n\n\n"@a/b@^1", react@^18:\n  version "18.0.0"\n  resolved "@LOCK@#ab"\n  dependencies:\n    loose "^1"\n',
    ),
    (
        "yarn.lock",
        '"react@git+https://host/a.git":\n  version "1"\n',
        "source",
        '"react@npm:^18":\n  resolution: "react@npm:18.0.0"\n\n"@shop/ui@workspace:packages/ui":\n  dependencies:\n    react: "npm:^18"\n',
    ),
    ("yarn.lock", '"react@npm:18::__archiveUrl=https%3A%2F%2Fhost":\n  version: 1\n', "source", "\n"),
    (
        "pnpm-lock.yaml",
        "packages:\n  a@1:\n    resolution: {tarball: 'https://h.example/x.tgz'}\n",
        "source",
        "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      react:\n        specifier: ^18\n        version: 18.0.0\n  packages/web:\n    dependencies:\n      '@shop/ui':\n        specifier: workspace:*\n        version: link:../ui\npackages:\n  loose-envify@1.4.0:\n    resolution: {integrity: sha512-x}\n",
    ),
    (
        "pnpm-lock.yaml",
        "packages:\n  a@1:\n    resolution: {type: git, repo: 'https://host/a', commit: x}\n",
        "source",
        "{}\n",
    ),
    (
        "bun.lock",
        '{"packages": {"a": ["a@1", "https://h.example/x.tgz"]}}',
        "source",
        '{"lockfileVersion": 1, "workspaces": {"": {"dependencies": {"react": "18"},},},"packages": {"react": ["react@18.0.0", "", {}, "sha512-x"], "@shop/ui": ["@shop/ui@workspace:packages/ui"],}}',
    ),
    ("bun.lock", '{"packages": {"a": ["a@github:x/y#1", {}, "x"]}}', "source", "{}"),
    ("deno.lock", '{"remote": {"https://host/x.ts": "ab"}}', "source", '{"version": "4", "npm": {"loose@1": {}}}'),
]


def said(path: str, text: str, before: str | None = None) -> list[Finding]:
    world = closed_world((*NEW, path), (*FILES, *BASE), BASE)
    return judged(world, {path: text}, {} if before is None else {path: before})


@pytest.mark.parametrize(("path", "refused", "code", "accepted"), TEXTS)
def test_files_of_npm_and_its_like(path: str, refused: str, code: str, accepted: str) -> None:
    found = said(path, refused)
    assert {one.code.removeprefix("contract.") for one in found} <= set(code.split()), found
    assert found
    assert all(one.severity.blocks or one.ask for one in found)
    if "dependency" in code.split():
        assert {one.where.field for one in found if one.code == "contract.dependency"} & {"evil", "x", "@evil/x"}
    assert said(path, refused, before=refused) == [], "what stood there already is not held against it"
    assert said(path, accepted.replace("@LOCK@", LOCK)) == []


@pytest.mark.parametrize("path", sorted({path for path, *_ in TEXTS}))
@given(text=st.text(max_size=60) | st.sampled_from(["[" * 5000, "{a: " * 500, "null", "[]", "1", '{"packages": []}']))
def test_no_text_makes_it_raise(path: str, text: str) -> None:
    assert not [one for one in said(path, text) if one.code == "contract.crashed"]
