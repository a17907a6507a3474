from hypothesis import given
from hypothesis import strategies as st

from orchestrator.code.javascript.source import exported_names, imports


def test_exports_of_both_module_systems() -> None:
    text = """
export default class Shelf {}
export const { open, close: shut, ...others } = api, [first] = list;
export async function load() {}
export { a as b, c };
export * as tools from "./tools.js";
module.exports = { add, remove: drop, find() {} };
exports.count = 1;
module.exports.clear = () => {};
"""
    names = "default open shut others first load b c tools add remove find count clear"
    assert exported_names(text) == tuple(names.split())
    assert exported_names("module.exports = function () {};") == ("default",)


def test_a_comment_before_the_module_hides_no_import() -> None:
    text = 'const a = await import(/* webpackChunkName: "a" */ "one");\nrequire(/* two */ "two");\n'
    assert [found.module for found in imports(text)] == ["one", "two"]


def test_imports_of_every_form_with_their_lines() -> None:
    text = """import express, { Router } from "express";
import "./side.js";
export * from '@scope/pkg/sub';
const fs = require('node:fs'), x = require(name);
const lazy = await import(`lodash`);
"""
    assert [(found.module, found.line) for found in imports(text)] == [
        ("express", 1),
        ("./side.js", 2),
        ("@scope/pkg/sub", 3),
        ("node:fs", 4),
        ("lodash", 5),
    ]


def test_typescript_by_its_own_grammar() -> None:
    text = """import type { A } from "types-only";
import fs = require("by-require");
export interface Book<T extends object = {}> { title: string }
export type Shelf = Book[];
export enum Kind { Novel }
export abstract class Store { constructor(private readonly name: string) {} }
export declare function load(path: string): Promise<Shelf>;
export const open = <T,>(x: T): T => x, shut = (y: number): y is 1 => true;
export default interface Main {}
const lazy = (await import("lazily")) as typeof X;
"""
    assert [(found.module, found.line) for found in imports(text, "a.ts")] == [
        ("types-only", 1),
        ("by-require", 2),
        ("lazily", 10),
    ]
    names = "Book Shelf Kind Store load open shut default"
    assert exported_names(text, "src/a.MTS") == tuple(names.split())
    page = "export const Page = (p: Props) => <b>{p.x as string}</b>;\nimport React from 'react';\n"
    assert (exported_names(page, "a.tsx"), imports(page, "a.tsx")[0].module) == (("Page",), "react")


def test_a_broken_or_typescript_text_gives_what_can_be_read() -> None:
    text = "class A<T> { private x: number = 1 }\nimport { Z } from 'late'\nexport const y = 1;\nfunction ( {"
    assert "late" in [found.module for found in imports(text)]
    assert "y" in exported_names("export const y = 1;\nfunction ( {")
    assert exported_names("{" * 20_000) == ()


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    exported_names(text)
    imports(text)
