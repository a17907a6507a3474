"""Texts with one fault each, and the value a careful reader takes from them."""

import json
from typing import Any

from orchestrator.core.calls.wire import BreakdownAnswer, DeliveryAnswer, SuiteAnswer

TASK = {"task_id": "T-US-004-01", "description": "Show the shelf", "files_to_create": ["src/shelf.js"]}
PLAN = {"story_id": "US-004", "architectural_conflict": {"detected": False}, "tasks": [TASK], "task_count": 1}
PLAN_TEXT = (
    '{\n  "story_id": "US-004",\n  "architectural_conflict": {"detected": false},\n  "tasks": [\n    {\n'
    '      "task_id": "T-US-004-01",\n      "description": "Show the shelf",\n'
    '      "files_to_create": ["src/shelf.js"]\n    }\n  ],\n  "task_count": 1\n}'
)


def files(*contents: str) -> dict[str, Any]:
    return {"files": [{"path": f"src/{n}.js", "content": content} for n, content in enumerate(contents)]}


def delivery(raw: str) -> str:
    """A delivery whose content stands as `raw` between the quotes."""
    return '{"files": [{"path": "src/0.js", "content": "' + raw + '"}]}'


REPAIRED: dict[str, tuple[str, Any, Any, str]] = {
    # name: (text, contract, value, kind of a repair that must be listed)
    "raw newline": (delivery("a\nb"), DeliveryAnswer, files("a\nb"), "raw_newline"),
    "raw tab": (delivery("a\tb"), DeliveryAnswer, files("a\tb"), "raw_tab"),
    "control character": (delivery("a\x01b"), DeliveryAnswer, files("a\x01b"), "raw_control"),
    "backslash before a quote that needs none": (delivery(r"it\'s \`x\` \$y a\_b"), DeliveryAnswer,
                                                 files("it's `x` $y a_b"), "invalid_escape"),
    "regular expression": (delivery(r"/\d+\s*\(x\)/"), DeliveryAnswer, files(r"/\d+\s*\(x\)/"), "invalid_escape"),
    "half an escape": (delivery(r"\u12 x"), DeliveryAnswer, files(r"\u12 x"), "invalid_escape"),
    "trailing commas": ('{"a": [1, 2,], "b": {"c": 3,},}', None, {"a": [1, 2], "b": {"c": 3}}, "trailing_comma"),
    "doubled comma": ('{"a": [1,, 2],, "b": 3}', None, {"a": [1, 2], "b": 3}, "extra_comma"),
    "missing comma in an object": ('{"a": 1\n "b": "x"\n "c": [1]}', None, {"a": 1, "b": "x", "c": [1]},
                                   "missing_comma"),
    "missing comma in a list": ('{"a": [{"b": 1} {"b": 2}], "c": ["x"\n"y"]}', None,
                                {"a": [{"b": 1}, {"b": 2}], "c": ["x", "y"]}, "missing_comma"),
    "comments": ('{ // first "one"\n "a": 1, /* {two} */ "b": "http://x" # three\n}', None, {"a": 1, "b": "http://x"},
                 "comment"),
    "python": ("{'a': True, 'b': None, 'c': 'it\\'s \"x\"'}", None, {"a": True, "b": None, "c": 'it\'s "x"'}, "quotes"),
    "smart quotes": ("{“a”: “say \"x\"”, “b”: 1}", None, {"a": 'say "x"', "b": 1}, "quotes"),
    "backquotes": ('{"a": `line\n${x} \\`y\\``}', None, {"a": "line\n${x} `y`"}, "quotes"),
    "bare keys": ("{a: 1, b_2: {c: []}}", None, {"a": 1, "b_2": {"c": []}}, "unquoted_key"),
    "no number": ('{"a": NaN, "b": [-Infinity, Infinity]}', None, {"a": None, "b": [None, None]}, "foreign_word"),
    "concatenation": ('{"a": "x" +\n "y" + "z", "b": 1}', None, {"a": "xyz", "b": 1}, "concatenation"),
    "unseen": ('\ufeff{"a":\u00a01}\u200b', None, {"a": 1}, "unseen_character"),
    "unseen at the ends": ('\ufeff{"a": 1}\u200b', None, {"a": 1}, "unseen_character"),
    "double encoded": (r'Answer: "{\"a\": [\"x\\n\\\"y\\\"\"]}"', None, {"a": ['x\n"y"']}, "double_encoded"),
    "entities": ("So: {&quot;a&quot;: [&quot;x &lt; &amp;amp; y&quot;]}", None, {"a": ["x < &amp; y"]},
                 "html_entities"),
    "wrapper": ('{"response": {"answer": {"files": []}}}', DeliveryAnswer, {"files": []}, "wrapper"),
    "list of one": ('[{"files": []}]', DeliveryAnswer, {"files": []}, "wrapper"),
    "arguments as a string": (r'{"name": "x", "arguments": "{\"files\": []}"}', DeliveryAnswer, {"files": []},
                              "wrapper"),
    "list not closed before a key": ('{"a": ["x", "y", "b": 2}', None, {"a": ["x", "y"], "b": 2}, "missing_closer"),
    "item not closed before the next": ('{"a": [{"b": 1, {"b": 2}]}', None, {"a": [{"b": 1}, {"b": 2}]},
                                        "missing_closer"),
    "object not closed before a key of the contract": (
        PLAN_TEXT.replace('{"detected": false}', '{"detected": false'), BreakdownAnswer, PLAN, "missing_closer"),
    "item not closed before a key of the answer": (
        PLAN_TEXT.replace('js"]\n    }\n  ],', 'js"]\n    ],'), BreakdownAnswer, PLAN, "missing_closer"),
    "one closer too many": (PLAN_TEXT.replace("false}", "false}}"), BreakdownAnswer, PLAN, "extra_closer"),
    "quotes": (delivery('say "hi", he said; log("a", "b"); x = {"k": "v"};'), DeliveryAnswer,
               files('say "hi", he said; log("a", "b"); x = {"k": "v"};'), "unescaped_quote"),
    "quotes at both ends": (delivery('"use strict"'), DeliveryAnswer, files('"use strict"'), "unescaped_quote"),
    "quotes, closers and commas of code": (delivery('f({"a": ["b"]}, "c"); g = [{"d": "e"}];\nh("}]}");'),
                                           DeliveryAnswer,
                                           files('f({"a": ["b"]}, "c"); g = [{"d": "e"}];\nh("}]}");'),
                                           "unescaped_quote"),
    "quotes in a suite": (
        '{"test_file": "t.py", "test_content": "assert f("x") == {"a": "b"}\nprint("test_cases")", '
        '"test_cases": ["works"]}', SuiteAnswer,
        {"test_file": "t.py", "test_content": 'assert f("x") == {"a": "b"}\nprint("test_cases")',
         "test_cases": ["works"]}, "unescaped_quote"),
    "one unescaped quote before a closer of code": (
        r'{"test_file": "t.py", "test_content": "f({\"k\": 1, "x\"})", "test_cases": ["works"]}', SuiteAnswer,
        {"test_file": "t.py", "test_content": 'f({"k": 1, "x"})', "test_cases": ["works"]}, "unescaped_quote"),
    "an unescaped quote before two closers of code": (
        delivery(r'<b style={{ width: 7 + \"%" }}>' + " and so on, line after line of it;" * 2), DeliveryAnswer,
        files('<b style={{ width: 7 + "%" }}>' + " and so on, line after line of it;" * 2), "unescaped_quote"),
    "a comma and closers of code after a backquote": (
        '{"files": [{"path": "src/0.js", "content": `f({a: `b`,\n});`}]}', DeliveryAnswer, files("f({a: `b`,\n});"),
        "unescaped_quote"),
    "template literals": (
        PLAN_TEXT.replace("Show the shelf", 'Render `<li class="${cls}">${name}</li>`\nand "quote" {braces}'),
        BreakdownAnswer,
        {**PLAN, "tasks": [{**TASK, "description": 'Render `<li class="${cls}">${name}</li>`\nand "quote" {braces}'}]},
        "unescaped_quote"),
}  # fmt: skip

_LINES = "import os\nprint(os.sep)\n"
_TWO = {
    "story_id": "US-004",
    "architectural_conflict": {"detected": False},
    "tasks": [TASK, {**TASK, "task_id": "T-US-004-02"}],
}
_DIFF = "--- a/answer.json\n+++ b/answer.json\n@@ -1,6 +1,6 @@\n" + "\n".join(
    [*(f" {line}" for line in PLAN_TEXT.split("\n")[:6]), '-      "description": "Show a shelf",',
     '+      "description": "Show the shelf",', *(f" {line}" for line in PLAN_TEXT.split("\n")[7:])])  # fmt: skip
REPAIRED |= {
    # losses seen in answers of models: nothing of them may be called whole
    "a line end escaped as in a shell": (delivery("import os\\\nprint(os.sep)\\\n"), DeliveryAnswer, files(_LINES),
                                         "escaped_line_end"),
    "an escaped line end continued on the next line": (delivery("import os\\n\\\nprint(os.sep)\\n\\\n"), DeliveryAnswer,
                                                       files(_LINES), "escaped_line_end"),
    "a backslash of the code's own": (delivery("ls \\\n  -l\ncd x\n"), DeliveryAnswer, files("ls \\\n  -l\ncd x\n"),
                                      "raw_newline"),
    "halves of a character in two strings": ('{"a": "x \\ud83d" + "\\ude00 y", "b": 1}', None, {"a": "x 😀 y", "b": 1},
                                             "split_character"),
    "a diff of an earlier answer": (_DIFF, BreakdownAnswer, PLAN, "diff_marks"),
    "a diff in a fence": (f"```diff\n{_DIFF}\n```", BreakdownAnswer, PLAN, "diff_marks"),
    "two parts": (
        "### Part 1: server\n" + json.dumps({**_TWO, "tasks": _TWO["tasks"][:1], "task_count": 1}) +
        "\n### Part 2: page\n" + json.dumps({"tasks": _TWO["tasks"][1:]}), BreakdownAnswer, {**_TWO, "task_count": 2},
        "joined_parts"),
    "parts under headings": (
        "## Server\n```json\n" + json.dumps(files("a")) + '\n```\n## Page\n```json\n{"files": [{"path": "b.js", '
        '"content": "b"}]}\n```', DeliveryAnswer, {"files": [*files("a")["files"], {"path": "b.js", "content": "b"}]},
        "joined_parts"),
    "an item closed too early": (
        PLAN_TEXT.replace('"Show the shelf",', '"Show the shelf"},'), BreakdownAnswer, PLAN, "extra_closer"),
    "a list closed too early": (
        '{"files": [{"path": "src/0.js", "content": "a"}], {"path": "src/1.js", "content": "b"}], "notes": "n"}',
        DeliveryAnswer, {**files("a", "b"), "notes": "n"}, "extra_closer"),
    "a closer too many behind the list": (
        '{"files": [{"path": "src/0.js", "content": "a"}}], "notes": "n"}', DeliveryAnswer,
        {**files("a"), "notes": "n"}, "extra_closer"),
}  # fmt: skip

FOUND: dict[str, tuple[str, Any, Any]] = {
    # valid JSON somewhere: found as it stands, status ok
    "prose with braces": ('I used {name} and `${id}`, see {GET, POST}: {"a": "}{"} - {done}', None, {"a": "}{"}),
    "fence": ('```json\n{"a": "```js\\nx\\n```"}\n```\nThat is all [1 of 2 files].', None, {"a": "```js\nx\n```"}),
    "tilde fence": ('~~~\n{"a": 1}\n~~~', None, {"a": 1}),
    "reasoning": ('<think>maybe {"files": []} or { "files": [ ...</think>{"files": []}', DeliveryAnswer,
                  {"files": []}),
    "reasoning that was not opened": ('maybe {"a": 2}, or {"a": [ "b\n</think>\n{"a": 1}', None, {"a": 1}),
    "tags inside strings": ('x {"a": "<think>no</think> y"} z', None, {"a": "<think>no</think> y"}),
    "headings such as code has": (json.dumps(files("// Other routes\nrest(unchanged)\n")), DeliveryAnswer,
                                  files("// Other routes\nrest(unchanged)\n")),
    "two tries under headings": (
        f"## First version\n{json.dumps(files('a'))}\n## Better\n{json.dumps(files('b'))}", DeliveryAnswer, files("b")),
    "draft, then final": ('{"files": [{"path": "a", "content": "long long long"}]}\nWait:\n{"files": []}',
                          DeliveryAnswer, {"files": []}),
    "final, then a note": (f'{PLAN_TEXT}\n\nIf unsure I answer {{"story_id": "US-XXX"}}.', BreakdownAnswer, PLAN),
    "template first": ('Format: {"files": [{"path": ..., "content": ...}]}\n\n{"files": []}', DeliveryAnswer,
                       {"files": []}),
    "smaller objects around": (f'{{"detected": false}} {PLAN_TEXT} {{"note": 1}}', BreakdownAnswer, PLAN),
    "cut object without a key of the contract": (f'{PLAN_TEXT}\nShall I use {{"dark": tr', BreakdownAnswer, PLAN),
    "aliases": ('x {"created_files": [{"filename": "a", "content": "b"}]}', DeliveryAnswer,
                {"created_files": [{"filename": "a", "content": "b"}]}),
    "garbage after": (PLAN_TEXT + '"}\n```<|im_end|>', BreakdownAnswer, PLAN),
}  # fmt: skip

_ONE = '{"files": [{"path": "src/0.js", "content": "a"}, '
TRUNCATED: dict[str, tuple[str, Any, Any]] = {
    "in an item": (_ONE + '{"path": "src/1.js", "content": "half', DeliveryAnswer, files("a")),
    "before a closer": (_ONE + '{"path": "src/1.js", "content": "whole?"', DeliveryAnswer, files("a")),
    "closers missing": ('{"files": [{"path": "src/0.js", "content": "a"}]', DeliveryAnswer, files("a")),
    "closers missing before prose": ('{"files": [{"path": "src/0.js", "content": "a"}\n\nThat is all.', DeliveryAnswer,
                                     files("a")),
    "in a number": ('{"a": "x", "b": 12', None, {"a": "x"}),
    "in a nested value": ('{"a": "x", "b": {"c": 1, "d', None, {"a": "x"}),
    "after a whole draft": (f'{PLAN_TEXT}\nBetter:\n{{"story_id": "US-004", "tasks": [{{"task_id": "T', BreakdownAnswer,
                            {"story_id": "US-004"}),
    "in a wrapper": ('{"response": ' + _ONE + '{"pa', DeliveryAnswer, files("a")),
    "in a wrapper, after a whole draft": (
        json.dumps(files("draft")) + '\nBetter:\n{"data": {\n  ' + _ONE[1:] + '{"pa', DeliveryAnswer, files("a")),
    "ellipsis": (_ONE + "..., ]}", DeliveryAnswer, files("a")),
    "ellipsis as a string": (_ONE + '"..."]}', DeliveryAnswer, files("a")),
    "ellipsis as a comment": (_ONE + "\n// ... 3 more files\n]}", DeliveryAnswer, files("a")),
    "half of a character": (_ONE + '{"path": "src/1.js", "content": "// \\ud83d end"}]}', DeliveryAnswer, files("a")),
    "code that a comment stands for": (
        json.dumps(files("a", "import x\n\n// ... existing code ...\n\nrun()\n")), DeliveryAnswer, files("a")),
    "the rest unchanged": (
        json.dumps(files("a", "f()\n/* rest of the file unchanged */\n")), DeliveryAnswer, files("a")),
    "parts that contradict each other": (
        "Part 1\n" + json.dumps(files("a")) + "\nPart 2\n" + json.dumps(files("b")), DeliveryAnswer, files("a")),
    "quotes, then the end": ('{"files": [{"path": "src/0.js", "content": "say "a""}, {"path": "src/1.js", "content": '
                             '"say "b', DeliveryAnswer, files('say "a"')),
}  # fmt: skip

REFUSED: dict[str, tuple[str, Any, str]] = {
    "hunks of a diff": ("@@ -1,2 +1,2 @@\n+{\n@@ -9,2 +9,2 @@\n+}", DeliveryAnswer, "answer.unreadable"),
    "empty": ("", None, "answer.none"),
    "prose": ("Sorry, I cannot. What does {done} mean?", None, "answer.none"),
    "number": ("42", None, "answer.none"),
    "reasoning only": ('<think>\n{"a": 1}', None, "answer.none"),
    "another object": ('{"detected": false}', BreakdownAnswer, "answer.unfit"),
    "inside of what cannot be read": (PLAN_TEXT.replace('"T-US-004-01"', "@@@"), BreakdownAnswer, "answer.unreadable"),
    "draft of what cannot be read": (PLAN_TEXT + PLAN_TEXT.replace('"T-US-004-01"', "@@@"), BreakdownAnswer,
                                     "answer.unreadable"),
    "value of a key": ('"tasks": {"a": 1}}', None, "answer.unfit"),
    "members after the end": ('{"a": {"b": 1}}, "c": 2}', None, "answer.unreadable"),
    "quotes without a contract that may end twice": (
        '{"a": "x = {"k": "v", "z": 1}", "b": 2}', None, "answer.unreadable"),
    "a string that would swallow members": (
        '{"story_id": "US-1 "architectural_conflict": {"detected": false}, "tasks": []}', BreakdownAnswer,
        "answer.unreadable"),
    "template": ('Use `{ "task_id": ..., "files": ... }` as the format.', DeliveryAnswer, "answer.none"),
    "too deep": ("[" * 5000 + "]" * 5000, None, "answer.unreadable"),
    "too deep but valid": ('{"a":' * 300 + "1" + "}" * 300, None, "answer.unreadable"),
    "endless number": ('{"a": ' + "9" * 5000 + "}", None, "answer.unreadable"),
}  # fmt: skip
