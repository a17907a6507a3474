"""What a Node project asks for, as its manager is to see it."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.environments.node_requirements import NodeRequirements, gather
from tests.environments.projects import write_tree

PLAIN = {"dependencies": {"express": "^4.18.0", "@scope/tool": "1.x || >=2.0.0 <3", "old": "npm:new@^1.0.0"}}
ALL = frozenset({"npm", "pnpm", "yarn"})


def read(root: Path, files: dict[str, Any], managers: frozenset[str] = ALL) -> NodeRequirements:
    texts = {name: held if isinstance(held, str) else json.dumps(held) for name, held in files.items()}
    return gather(write_tree(root, texts), managers)


def manifest(found: NodeRequirements, folder: str = "") -> dict[str, Any]:
    told = json.loads(found.files[f"{folder}package.json"])
    assert isinstance(told, dict)
    return told


def test_plain_packages_are_taken_and_nothing_is_said(tmp_path: Path) -> None:
    overrides = {"a": {"b": "1.0.0", ".": "2.0.0"}, "express": "$express"}
    npmrc = "# ours\nsave-exact=true\nlegacy-peer-deps=true\nregistry=https://registry.npmjs.org/\n"
    files = {
        "package.json": {**PLAIN, "overrides": overrides, "scripts": {"postinstall": "make"}},
        "package-lock.json": {"packages": {}},
        ".npmrc": npmrc,
        "src/secret.js": "not for an installer",
    }
    found = read(tmp_path, files)
    assert (found.wanted, found.refusals, found.left_out) == (True, (), ())
    assert found.names == ("express", "@scope/tool", "new")
    assert manifest(found) == {**PLAIN, "overrides": overrides}
    assert found.files.keys() == {"package.json", "package-lock.json", ".npmrc"}
    assert found.files[".npmrc"] == "legacy-peer-deps=true\n"


@pytest.mark.parametrize(
    "spec",
    [
        *("git+https://a.org/x.git", "github:a/x", "a/x", "file:../x", "https://a.org/x.tgz", "link:./gone"),
        *("file:a.tgz", "npm:git+ssh://a.org/x", "file:./a\0b", "file:./loop", "file:.", 1),
    ],
)
def test_what_comes_from_no_registry_is_left_out_and_told(spec: object, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    found = read(tmp_path, {"package.json": {"dependencies": {"x": spec, "y": "1"}, "overrides": {"z": "git://a/b"}}})
    assert manifest(found)["dependencies"] == {"y": "1"}
    assert manifest(found)["overrides"] == {}
    [told] = found.left_out
    assert told.startswith("package.json: `x: ")


def test_settings_that_name_other_registries_are_left_out_and_told(tmp_path: Path) -> None:
    lines = ["@a:registry=https://elsewhere.example/", "//elsewhere.example/:_authToken=${SECRET}"]
    found = read(tmp_path, {"package.json": PLAIN, ".npmrc": "\n".join([*lines, "ignore-scripts=false"])})
    assert ".npmrc" not in found.files
    assert [told.partition(" was left out")[0] for told in found.left_out] == [
        ".npmrc: `@a:registry`",
        ".npmrc: `//elsewhere.example/:_authToken`",
    ]


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "3", '{"dependencies": ["x"]}'])
def test_a_manifest_that_cannot_be_understood_is_refused(text: str, tmp_path: Path) -> None:
    [refusal] = read(tmp_path, {"package.json": text}).refusals
    assert refusal.startswith("package.json: ")


def test_nothing_asked_for_is_nothing(tmp_path: Path) -> None:
    assert not read(tmp_path, {"README.md": ""}).wanted
    assert not read(tmp_path, {"package.json": {"scripts": {"x": "y"}, "dependencies": {}}}).wanted


@pytest.mark.parametrize("manager", ["npm", "yarn", "pnpm"])
def test_projects_of_a_workspace_are_seen_with_their_manifests_alone(manager: str, tmp_path: Path) -> None:
    members = ["packages/*", "./apps/**", "!packages/old"]
    inner = {"@x/a": "workspace:^" if manager == "pnpm" else "*", "kit": "catalog:" if manager == "pnpm" else "2"}
    files = {
        "package.json": {"name": "root", "workspaces": members, "dependencies": {"tools": "file:./tools"}},
        "pnpm-workspace.yaml": json.dumps({"packages": members, "catalog": {"kit": "2"}, "storeDir": "/etc"}),
        "packages/a/package.json": {"name": "@x/a", "scripts": {"install": "x"}, "dependencies": {"left": "1"}},
        "packages/old/package.json": {"name": "old", "dependencies": {"gone": "1"}},
        "packages/a/node_modules/x/package.json": {"dependencies": {"gone": "1"}},
        "apps/in/web/package.json": {"dependencies": inner},
        "apps/broken/package.json": "{",
        "tools/package.json": {"name": "tools", "dependencies": {"@x/a": "file:../packages/a"}},
        {"npm": "package-lock.json", "yarn": "yarn.lock", "pnpm": "pnpm-lock.yaml"}[manager]: "{}",
    }
    if manager != "pnpm":
        del files["pnpm-workspace.yaml"]
    found = read(tmp_path, files)
    assert (found.manager, found.members) == (manager, ("apps/in/web", "packages/a", "tools"))
    assert set(found.names) == {"left", "kit"} | ({"@x/a"} if manager != "pnpm" else set())
    assert "scripts" not in manifest(found, "packages/a/")
    assert manifest(found)["dependencies"] == {"tools": "file:./tools" if manager == "npm" else "link:./tools"}
    assert [told.partition(":")[0] for told in found.left_out] == ["apps/broken/package.json was left out"]
    if manager == "pnpm":
        assert "storeDir" not in found.files["pnpm-workspace.yaml"]
        assert "kit: '2'" in found.files["pnpm-workspace.yaml"]
        alone = gather(tmp_path)
        assert alone.manager == "npm"
        assert manifest(alone, "apps/in/web/")["dependencies"] == {"@x/a": "*", "kit": "2"}
        assert "pnpm is not installed here" in alone.left_out[0]
    else:
        assert manifest(found)["workspaces"] == ["apps/in/web", "packages/a", "tools"]


@pytest.mark.parametrize(("lock", "kept"), [("# yarn lockfile v1\n", True), ("__metadata:\n  version: 8\n", False)])
def test_npm_takes_the_versions_of_an_old_yarns_lock(lock: str, kept: bool, tmp_path: Path) -> None:
    found = read(tmp_path, {"package.json": PLAIN, "yarn.lock": lock}, frozenset({"npm"}))
    assert (found.manager, "yarn.lock" in found.files, len(found.left_out)) == ("npm", kept, 1)
