"""The closed world of JavaScript: nothing comes in by a side door, and what real projects write passes."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.contract.enforce import check_delivery, check_diff
from orchestrator.core.contract import ArchitectureContract, Installed, InstalledPackages
from orchestrator.core.delivery import Delivery, DiffEntry, FileChange
from orchestrator.core.finding import Finding, Severity
from tests.contract.worlds import closed_world, judged

PACKAGES = (
    "react react-dom next vite express vue svelte @sveltejs/kit lodash date-fns @scope/ui zod execa zx @types/node "
    "@types/estree @emotion/react @tanstack/react-query socket.io prismjs unplugin-icons bullmq vitest jest"
)
BASE = {
    "package.json": json.dumps(
        {"name": "shop", "workspaces": ["packages/*"], "dependencies": dict.fromkeys(PACKAGES.split(), "1")}
    ),
    "packages/ui/package.json": '{"name": "@shop/ui"}',
    "tsconfig.json": """{"extends": "./tsconfig.base.json", // the rest
      "compilerOptions": {"baseUrl": "src", "paths": {"@app/*": ["./*"], "config": ["./config/index.ts"]},}}""",
    "web/jsconfig.json": '{"compilerOptions": {"baseUrl": "."}}',
}
FILES = (
    "src/a.ts", "src/components/Button.tsx", "src/config/index.ts", "src/data.json", "src/utils.ts", "src/logo.svg",
    "web/lib/api.js", "public/sw.js", "public/js/app.js", "src/locales/en.js", "src/i18n.d.ts",
    "src/types.ts", "src/globals.css", "src/Button.module.scss", "src/shader.glsl", "src/icon.svg", "src/w.ts",
    "src/x.ts", "src/pages/Home.tsx", "components/Map.tsx", "api.ts",
)  # fmt: skip
NEW = ("src/new.ts", "src/new.tsx", "src/new.js", "src/new.vue", "src/pages/[id].tsx", "web/new.js", "vite.config.ts")


def frozen(*more: str) -> ArchitectureContract:
    return closed_world((*NEW, *more), (*FILES, *BASE), BASE)


WORLD = frozen()


PIECES = [
    *re.split(" ", "require import from eval new Function Worker module createRequire export const let a b = ( ) [ ]"),
    *re.split(" ", "{ } . , ; ? : => ` ${ } ` 'x' './y' + ... [...] exec spawn execSync ['npm','i'] {a:1} in of for"),
    *re.split(
        " ", "function class async await <script> </script> <a> // /* */ bind call apply this import.meta .resolve"
    ),
    *re.split(" ", r"join path null \u0061 \ud800 '\u{110000}' '\x0' type"),
]


def said(text: str, path: str = "src/new.ts", world: ArchitectureContract = WORLD, **others: str) -> list[Finding]:
    return judged(world, {path: text, **others})


ASKED = """
require("evil")
import x from "evil"
import {type A} from "evil"
import type A from "evil"
let x: typeof import("evil")
import x = require("evil")
export * from "evil"
export {default as x} from "evil/x"
import("evil").then(x => x)
import/* a */("evil")
import "npm:evil@1"
import "jsr:evil"
import "./node_modules/evil"
import "../../node_modules/evil/x.js"
import "style-loader!evil"
import "evil?raw"
/// <reference types="evil" />
/** @jsxImportSource evil */
jest.mock("evil")
vi.mock("evil")
await import(/* webpackIgnore: true */ "evil", {with: {type: "json"}})
"""
REFUSED = """
import "react/../evil"
import "../../../outside"
import "./%2e%2e/%2e%2e/x.js"
import {x} from "./nothere"
import {x} from "./nothere.js"
export * from "./components/Nothere"
const x = require("../src/nothere")
"""
FREE = """
await import(name)
try { require("evil") } catch { }
if (typeof require !== "undefined") require("evil")
(typeof define === "function" && define.amd) ? define(["evil"], f) : f(require("evil"))
const x = typeof window === "undefined" ? require("evil") : window.evil
import "https://host/x.js"
import "data:text/javascript,1"
import "/abs/path.js"
import "virtual-x:y"
import x from "./generated/api"
import x from "./made.gen"
"""


@pytest.mark.parametrize("line", ASKED.strip().splitlines())
def test_a_package_that_nothing_declares_is_a_question(line: str) -> None:
    found = [one for one in said(line, "src/new.js" if "jsx" in line else "src/new.ts") if one.where.field == "evil"]
    assert [(one.code, one.severity, one.ask) for one in found] == [("contract.import", Severity.MINOR, True)]
    assert check_with_base(line) == []


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_a_path_to_nowhere_is_refused(line: str) -> None:
    found = said(line)
    assert {one.code for one in found} <= {"contract.import", "contract.missing_module"}, found
    assert [one.severity.blocks for one in found] == [True]
    assert not [one for one in check_with_base(line) if one.severity.blocks], "what stood there already"


@pytest.mark.parametrize("line", FREE.strip().splitlines())
def test_what_the_program_can_do_without_is_nobodys_question(line: str) -> None:
    assert said(line) == []


def test_what_a_declared_package_requires_is_there() -> None:
    installed = InstalledPackages(node={"vite": Installed(requires=("rollup",)), "rollup": Installed()})
    change = FileChange(path="src/new.ts", content='import {rollup} from "rollup"')
    found = check_delivery(WORLD, Delivery(story_id="US-001", task_id="T1", files=(change,)), {}, installed)
    assert [(one.code, one.where.field, one.ask) for one in found] == [("contract.transitive", "rollup", False)]


def check_with_base(text: str) -> list[Finding]:
    change = FileChange(path="src/new.ts", content=f"{text}\n// more\n")
    delivery = Delivery(story_id="US-001", task_id="T1", files=(change,))
    return check_delivery(WORLD, delivery, {"src/new.ts": text})


GOOD = """
import React, { useState } from "react"
import * as ReactDOM from "react-dom/client"
import type { FC } from "react"
import { type A, B } from "./types.js"
import "./globals.css"
import styles from "./Button.module.scss"
import logo from "./logo.svg"
import raw from "./shader.glsl?raw"
import Icon from "./icon.svg?react"
import worker from "./w?worker&inline"
import data from "./data.json" with { type: "json" }
import data from "../package.json" assert { type: "json" }
import Link from "next/link"
import express from "express"
import { readFile } from "node:fs/promises"
import { join } from "path/posix"
import test from "node:test"
import { Database } from "bun:sqlite"
import { Button } from "@scope/ui/button"
import { Button } from "@shop/ui/button"
import { x } from "shop/server.js"
import Button from "components/Button"
import { x } from "utils"
import conf from "config"
import { x } from "@app/components/Button"
import { x } from "@/lib/x"
import { x } from "#internal/db"
import { page } from "$app/stores"
import { x } from "$lib/x"
import Home from "~icons/mdi/home"
import { registerSW } from "virtual:pwa-register"
import { jsx } from "@emotion/react"
import type { Node } from "estree"
/// <reference types="node" />
/// <reference types="vite/client" />
/// <reference path="../types.d.ts" />
/** @jsxImportSource @emotion/react */
declare module "anything" { export default x }
export * from "./x.js"
export * as z from "zod"
const x = lazy(() => import("./pages/Home"))
const x = dynamic(() => import("../components/Map"), { ssr: false })
const m = await import(`./locales/${lang}.js`)
const l = await import(`date-fns/locale/${lang}`)
const { name } = require("../package.json")
const model = require(path.join(__dirname, file))(sequelize, DataTypes)
import { createRequire } from "node:module"; const require = createRequire(import.meta.url); require("react")
module.exports = { presets: [require.resolve("next/babel")] }
jest.mock("../api"); jest.mock("react", () => ({ ...jest.requireActual("react"), x: 1 }))
const m = /import x from "y"/.exec(text)
console.log("run npm install express to begin")
execSync("npm run build && npm ci && npm install"); spawn("node", ["server.js"])
import("lodash/" + name)
import { x } from "LODASH"
import "server-only"
"""


@pytest.mark.parametrize("line", GOOD.strip().splitlines())
def test_what_real_projects_write_passes(line: str) -> None:
    assert said(line) == []
    after = {"src/new.ts": line}
    entry = DiffEntry(path="src/new.ts", status="A", old_mode="000000", new_mode="100644")
    assert check_diff(WORLD, [entry], after, {}, frozenset()) == []


def test_files_between_other_things() -> None:
    good = '<script setup lang="ts">\nimport { ref } from "vue"\nconst n: number = ref(1)\n</script>\n'
    page = good + "<template><p>import from 'evil' into \"evil\"</p></template>\n<style>@import 'x';</style>"
    assert said(page, "src/new.vue") == []
    bad = "<script>\nimport 'evil'\n</script>"
    assert [(one.code, one.where.field) for one in said(good + bad, "src/new.vue")] == [("contract.import", "evil")]
    assert said('<script>\nconst x = 1\nimport "evil"\n</script>', "src/new.vue")[0].where.line == 3


def test_aliases_of_a_configuration_that_the_story_brings() -> None:
    world = frozen("app/tsconfig.json", "app/src/card/Card.tsx", "app/src/main.ts")
    config = '{"compilerOptions": {"paths": {"@parts/*": ["./src/card/*"], "evil": ["../node_modules/evil"]}}}'
    use = 'import Card from "@parts/Card"'
    assert said(use, "app/src/main.ts", world=world) == [], "its text may have come in an earlier task"
    entry = DiffEntry(path="app/src/main.ts", status="A", old_mode="000000", new_mode="100644")
    whole = {"app/src/main.ts": use, "app/tsconfig.json": config}
    assert check_diff(world, [entry], whole, {}, frozenset()) == []
    for other in (whole | {"app/tsconfig.json": "{}"}, whole | {"app/src/main.ts": 'import "@parts/Other"'}):
        assert [one.code for one in check_diff(world, [entry], other, {}, frozenset())] == ["contract.import"]
    assert said('import "evil"', "app/src/main.ts", world=world)[0].where.field == "evil"
    new = frozen("packages/core/package.json", "packages/core/index.ts")
    assert said('import "@shop/core"', world=new) == [], (
        "a package of the project that an earlier task may have brought"
    )
    assert said('import "@shop/other"', world=new)[0].where.field == "@shop/other"
    manifest = {"packages/core/package.json": '{"name": "@shop/kernel"}'}
    assert said('import "@shop/kernel/x"', world=new, **manifest) == []


def test_a_build_tool_may_give_folders_names() -> None:
    world = frozen("src/hooks/useCart.ts")  # beside vite.config.ts, which is a program
    assert said('import { useCart } from "@hooks/useCart"', world=world) == []
    assert said('import { x } from "@evil/useCart"', world=world)[0].where.field == "@evil/usecart"


@pytest.mark.parametrize(
    "text",
    [
        "require(" + " + ".join(["'a'"] * 20_000) + ")",
        "x" + ".a(1)" * 20_000,
        "[" * 20_000,
        "require" + "/*" * 20_000,
    ],
)
def test_a_large_text_is_read_to_its_end(text: str) -> None:
    said(text, "src/new.js")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join))
def test_no_program_makes_it_raise(text: str) -> None:
    for path in ("src/new.ts", "src/new.js", "src/new.vue"):
        assert "contract.crashed" not in {one.code for one in said(text, path)}
