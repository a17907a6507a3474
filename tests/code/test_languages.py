"""What passes and what does not where a language, a template or the project's own version decides."""
# ruff: noqa: E501 - texts of other languages stand as they are

import sys

import pytest

from orchestrator.code.check import CHECKED_SUFFIXES, Target, check_syntax, oldest_python, target_of, unchecked_language

HELM = "metadata:\n  name: {{ .Values.name }}\n  {{- if .Values.labels }}\n  labels: {{ toYaml .Values.labels | nindent 4 }}\n"
SOUND = {
    "chart/templates/a.yaml": HELM,
    "app/templates/a.js": "const x = {{ data|tojson }};\n{% for m in all %}\nf('{{ m }}');\n{% endfor %}\n",
    "app/templates/a.json": '{"name": {{ name|tojson }}}\n',
    "app/templates/a.css": "{% if dark %}\n.a { color: {{ color }}; }\n{% endif %}\n",
    "playbook.yml": "- hosts: all\n  tasks:\n    - shell: \"echo {{ x }}\"\n      when: y is defined\n",
    "two.yaml": "a: !Custom {b: &x 1}\n--- # next\n- *y\n...\n",
    "tabs.yaml": "a: |\n  one\n  \ttab\nb: 'x'\t# comment\n",
    "test/tsconfig.json": '{"a": [1, // {"x": 1}\n  2, /* ] */ ], // }\n}\n',
    ".devcontainer/devcontainer.json": '{"a": "// }", // "b": {}\n}\n',
    "packages/api-extractor-react.json": "// of a tool\n{}\n",
    "dev/all.sh": "#!/bin/zsh\nfor f (*) echo $f\n",
    "{{cookiecutter.name}}/setup.py": "{% if cookiecutter.a %}\nx = {{ cookiecutter.name }}\n{% endif %}\n",
    "tsconfig.base.json": '{"a": 1, /* b */ "c": [1, 2,], }\n// end\n',
    ".vscode/settings.json": "// none\n{}\n",
    ".codesandbox/tasks.json": "{\n  // In order.\n  \"setupTasks\": []\n}\n",  # excalidraw
    "asv_bench/asv.conf.json": "{\n    // The version of the format.\n    \"version\": 1,\n}\n",  # geopandas
    "a.jsonc": '{"url": "http://x", /* , ] */ "b": "/* no */"}',
    "a.jsonl": '{"a": 1}\n\n[2]\n"x"\n',
    "a.css": "@apply x;\n.a { &:hover { color: red } color: var(--x,) ; --y: {a:b} }\n.b:has(> .c) {}\n",
    "jinja.css": "body { color: {{ color }}; {% if x %} margin: 0 {% endif %} }\n",
    "ejs.html": "<ul><% for (const a of b) { %><li><%= a %></li><% } %></ul>\n",
    "client-tsconfig.json": "{\n  // Not clean.\n  \"files\": []\n}\n",  # squoosh
    "run": "#!/usr/bin/env bash\nif true; then echo x; fi\n",
    "tool": "#!/usr/bin/env python3\nprint('x')\n",
    "crlf.sh": "#!/bin/sh\r\nif a; then\r\n  b\r\nfi\r\n",
    "a.sh": "f() (x)\ncase a in (b|c) d;; *) ;; esac\nfor x; do :; done\n((a<<2)); echo $((1+(2*3))) \"${a:-$(b \"c\")}\" 'it'\"'\"'s'\n",
    "heredoc.sh": "cat <<-'A' <<B | c\n\tdon't \"\n\tA\n$(d)\nB\necho $'it\\'s' ${x//\\'/} \\\"\n",
    "a.svg": "<svg xmlns='http://x'><path d='M0 0'/></svg>",
    "setup.cfg": "[metadata]\nname = a\n  b\n[x]\ny\n",
    "Cargo.lock": "version = 3\n[[package]]\nname = \"a\"\n",
    "fence.md": "```js\nlet a = (\n```\n",
    "a.txt": "(((",
    "wasm.rs": "#[wasm_bindgen]\nextern \"C\" {\n    #[wasm_bindgen(js_name = D)]\n    pub type Data;\n}\n",  # squoosh
    "a.rs": "fn f<'a>(x: &'a str) -> impl Fn() + 'a { let r#type = try!(g()); move || { x; } }\n",
    "a.ts": "export { a as default, b as if };\nlet x: import('y').Z<string>;\ninterface I { abstract?: boolean }\n",
}  # fmt: skip
BROKEN = {
    "a.jsonl": ('{"a": 1}\n{"a": \n', 2),
    "a.jsonc": ('{"a": 1 // x\n "b": 2}', 2),
    "a.svg": ("<svg>\n<g>\n</svg>\n", 3),
    "setup.cfg": ("name = a\n", 1),
    "Cargo.lock": ("[[package]\n", 1),
    "crossed.tsx": ("const a = (\n  <div>\n    <p>\n  </div>\n);\n", 3),
    "static/a.js": ("const x = {{ data }};\n", 1),
    "commented.js": ("// all in one line\\nconst a = 1;\\nconst b = 2;\\n", 1),
    "fenced.js": ("```js\nconst a = 1;\n```\n", 1),
}


@pytest.mark.parametrize("path", SOUND)
def test_what_is_right_in_its_language_passes(path: str) -> None:
    assert [str(found) for found in check_syntax(path, SOUND[path])] == []


@pytest.mark.parametrize("path", BROKEN)
def test_what_is_broken_is_found(path: str) -> None:
    text, line = BROKEN[path]
    found = check_syntax(path, text)
    assert found
    assert found[0].where.line == line, str(found[0])


def test_every_suffix_that_is_checked_refuses_a_merge_marker() -> None:
    text = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"
    assert [suffix for suffix in CHECKED_SUFFIXES if not check_syntax(f"a{suffix}", text)] == []


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a.rb", "", "Ruby"),
        ("Dockerfile.dev", "", "Dockerfile"),
        ("Makefile", "", "Make"),
        ("a.html.j2", "", "a template language"),
        ("a.vue", "", "Vue"),
        ("bin/x", "#!/usr/bin/perl\n", "perl"),
        ("a.py", "", None),
        ("README.md", "", None),
        (".gitignore", "", None),
    ],
)
def test_code_without_a_parser_is_named(path: str, text: str, language: str | None) -> None:
    assert check_syntax(path, text) == []
    assert unchecked_language(path, text) == language


@pytest.mark.parametrize(
    ("specifier", "oldest"),
    [(">=3.9", (3, 9)), (">=3.9.2,<4", (3, 9)), ("~=3.10", (3, 10)), ("<4", None), ("", None), ("nonsense", None)],
)
def test_the_oldest_python_a_project_promises(specifier: str, oldest: tuple[int, int] | None) -> None:
    assert oldest_python(specifier) == oldest
    assert target_of(f"requires-python {specifier}; node >=20").python == oldest


MATCH = "match x:\n    case 1:\n        pass\n"


def test_python_is_judged_for_the_project_not_for_us() -> None:
    (found,) = check_syntax("a.py", MATCH, target=Target(python=(3, 9)))
    assert "3.10" in found.message
    assert "promises Python 3.9" in found.message
    assert (found.where.line, found.where.column) == (1, 1)
    assert check_syntax("a.py", MATCH, target=Target(python=(3, 10))) == []
    (found,) = check_syntax("a.py", "try:\n    f()\nexcept* E:\n    pass\n", target=Target(python=(3, 10)))
    assert found.where.line == 1
    assert check_syntax("a.py", "import os\nx: int = 1\n", target=Target(python=(3, 6))) == []


@pytest.mark.parametrize(
    "text",
    [
        "type A[T] = list[T]\n",
        "def f[T](x: T) -> T:\n    return x\n",
        "class A[T: (int, str) = int]:\n    pass\n",
        "x = f'{a['b']}'\n",
        "x = f'{'\\n'.join(a)}'\n",
    ],
)
def test_what_only_a_newer_python_reads_passes_unless_an_older_one_is_promised(text: str) -> None:
    newer = Target(python=(3, sys.version_info.minor + 1))
    assert check_syntax("a.py", text, target=newer) == []
    assert check_syntax("a.py", text) == []
    assert check_syntax("a.py", text, target=Target(python=(3, 11)))


@pytest.mark.parametrize(
    "text", ["def f(:\n", "x = (1\ny = 2\n", "print 'x'\n", "if a\n    b\n", "class A:\nx = 1 +\n"]
)
def test_what_no_python_reads_is_found_for_a_newer_one_too(text: str) -> None:
    assert check_syntax("a.py", text, target=Target(python=(3, 30))) != []
