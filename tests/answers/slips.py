"""Slips that models make, each with what a careful reader takes it for: (text, contract, value, kind of the repair)."""
# ruff: noqa: E501  (a row of a table stays on its line)

import json
from typing import Any

from orchestrator.core.calls.wire import DeliveryAnswer
from tests.answers.cases import delivery, files

S = {"type": "string"}
LINE = {"type": "object", "required": ["sku", "qty"], "properties": {"sku": S, "qty": {"type": "integer"}, "note": S}}
INVOICE: dict[str, Any] = {
    "type": "object",
    "required": ["invoice_id", "lines"],
    "properties": {
        "invoice_id": S,
        "total": {"type": "number"},
        "paid": {"type": "boolean"},
        "lines": {"type": "array", "items": LINE},
        "line_count": {"type": "integer"},
    },
}
LINES: dict[str, Any] = {"type": "array", "items": LINE}
EMPTY = {"invoice_id": "x", "lines": []}
ONE = {"invoice_id": "x", "lines": [{"sku": "a", "qty": 1}]}
TWO = {"invoice_id": "x", "lines": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 2}]}
PYTHON = 'def f():\n    """Say "a"."""\n    return "a"\n'
Slip = tuple[str, Any, Any, str]


def long(literal: str) -> str:
    """A delivery whose content is the literal as it is."""
    return '{"files": [{"path": "src/0.py", "content": ' + literal + "}]}"


def python(content: str) -> dict[str, Any]:
    return {"files": [{"path": "src/0.py", "content": content}]}


LONG_STRINGS: dict[str, Slip] = {
    "triple quotes": (long(f'"""{PYTHON}"""'), DeliveryAnswer, python(PYTHON), "triple_quotes"),
    "triple quotes, opened on a line of their own": (
        long(f'"""\n{PYTHON}"""'), DeliveryAnswer, python(PYTHON), "triple_quotes"),
    "triple apostrophes": (long(f"'''{PYTHON}'''"), DeliveryAnswer, python(PYTHON), "triple_quotes"),
    "triple quotes with escapes only": (
        long('"""x = 1\\ny = 2\\n"""'), DeliveryAnswer, python("x = 1\ny = 2\n"), "triple_quotes"),
    "triple quotes, escapes of the code": (
        long('"""print("a\\n")\n"""'), DeliveryAnswer, python('print("a\\n")\n'), "verbatim"),
    "a fenced block": (long(f"```python\n{PYTHON}```"), DeliveryAnswer, python(PYTHON), "fenced_value"),
    "a fenced block behind an empty line": (
        long(f"\n```python\n{PYTHON}\n```\n"), DeliveryAnswer, python(PYTHON), "fenced_value"),
    "a fenced block that holds closers": (
        long('```js\nf({"a": [1]});\n}]}\n```'), DeliveryAnswer, python('f({"a": [1]});\n}]}\n'), "fenced_value"),
    "raw line ends beside the code's own escapes": (
        long('"def f():\n    print(\\"a\\n\\")\n"'), DeliveryAnswer, python('def f():\n    print("a\\n")\n'), "verbatim"),
    "raw line ends beside escaped ones": (
        long('"def f():\\n    return 1\n"'), DeliveryAnswer, python("def f():\n    return 1\n"), "raw_newline"),
    "a backquoted value with bare escapes of its code": (
        '{"files": [{"path": "a.js", "content": `const r = /\\d+\\n/;\nf("a\\n");`}]}', DeliveryAnswer,
        {"files": [{"path": "a.js", "content": 'const r = /\\d+\\n/;\nf("a\\n");'}]}, "verbatim"),
    "a path behind its content": (
        '{"files": [{"content": "x = "a"\n", "path": "src/0.py"}]}', DeliveryAnswer, python('x = "a"\n'),
        "unescaped_quote"),
}  # fmt: skip

LITERALS: dict[str, Slip] = {
    name: (f'{{"invoice_id": "x", "total": {written}, "lines": []}}', INVOICE, {**EMPTY, "total": meant}, kind)
    for name, written, meant, kind in (
        ("a plus", "+1.5", 1.5, "loose_number"),
        ("no leading digit", ".5", 0.5, "loose_number"),
        ("no digit behind the point", "5.", 5.0, "loose_number"),
        ("hexadecimal", "0x1F", 31, "loose_number"),
        ("underscores", "1_000", 1000, "loose_number"),
        ("leading zeros", "007", 7, "loose_number"),
        ("not finite where null has no place", "Infinity", float("inf"), "not_finite"),
        ("a call", "Decimal('1.5')", "1.5", "call"),
    )
} | {
    "capital words": ('{"a": TRUE, "b": NULL, "c": nil}', None, {"a": True, "b": None, "c": None}, "foreign_word"),
    "a switch where a truth value is wanted": (
        '{"invoice_id": "x", "paid": yes, "lines": []}', INVOICE, {**EMPTY, "paid": True}, "foreign_word"),
    "a switch where a string is wanted": (
        '{"invoice_id": yes, "lines": []}', INVOICE, {"invoice_id": "yes", "lines": []}, "unquoted_string"),
    "words without quotes": (
        '{"invoice_id": INV-7 B, "lines": [{"sku": src/a.py, "qty": 2}]}', INVOICE,
        {"invoice_id": "INV-7 B", "lines": [{"sku": "src/a.py", "qty": 2}]}, "unquoted_string"),
    "an object without any quotes": (
        "{name: John Smith, url: http://x.org/b, age: 3}", None,
        {"name": "John Smith", "url": "http://x.org/b", "age": 3}, "unquoted_string"),
    "a code of a country": ('{"zip": 01234, "b": 1}', None, {"zip": "01234", "b": 1}, "unquoted_string"),
    "a tuple": ('{"a": (1, "b"), "c": ("d")}', None, {"a": [1, "b"], "c": "d"}, "tuple"),
    "a dictionary as Python prints it": (
        "{'a': None, 'b': True, 'c': \"it's\", 'd': b'x'}", None, {"a": None, "b": True, "c": "it's", "d": "x"},
        "string_prefix"),
    "strings one after another": (
        '{"a": "one "\n      "two", "b": ("three "\n "four")}', None, {"a": "one two", "b": "three four"},
        "concatenation"),
    "quotation marks of other scripts": ("{«a»: „b“, 「c」: ＂d＂}".replace("“", "”"), None, {"a": "b", "c": "d"}, "quotes"),
}  # fmt: skip

PUNCTUATION: dict[str, Slip] = {
    name: (text, INVOICE, value, kind)
    for name, text, value, kind in (
        ("no colon", '{"invoice_id" "x", "lines" []}', EMPTY, "missing_colon"),
        ("two colons", '{"invoice_id":: "x", "lines": []}', EMPTY, "extra_colon"),
        ("an equals sign", '{"invoice_id" = "x", "lines" = []}', EMPTY, "foreign_colon"),
        ("an arrow", '{"invoice_id" => "x", "lines" => []}', EMPTY, "foreign_colon"),
        ("a wide colon and comma", '{"invoice_id"："x"，"lines"：[]}', EMPTY, "foreign_colon"),
        ("semicolons", '{"invoice_id": "x"; "lines": []}', EMPTY, "foreign_comma"),
        ("no quote before a key", '{invoice_id": "x", "lines": []}', EMPTY, "missing_quote"),
        ("no quote behind a key", '{"invoice_id: "x", "lines": []}', EMPTY, "missing_quote"),
        ("no quote before a string", '{"invoice_id": x", "lines": []}', EMPTY, "missing_quote"),
        ("no quote behind a string", '{"invoice_id": "x, "lines": []}', EMPTY, "missing_quote"),
        ("no brace before an item", '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1}, "sku": "b", "qty": 2}]}',
         TWO, "missing_opener"),
        ("no brace before the first item", '{"invoice_id": "x", "lines": ["sku": "a", "qty": 1}]}', ONE, "missing_opener"),
        ("no brace before the answer", 'Here:\n"invoice_id": "x", "lines": []}', EMPTY, "missing_opener"),
        ("a brace too many", '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1}}, {"sku": "b", "qty": 2}]}', TWO,
         "extra_closer"),
        ("a brace too many before a comment",
         '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1}}, // one\n{"sku": "b", "qty": 2}]}', TWO, "extra_closer"),
        ("a wrong closer", '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1]]}', ONE, "wrong_closer"),
        ("an item closed as a list", '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1],\n{"sku": "b", "qty": 2}]}', TWO,
         "wrong_closer"),
        ("rests behind a closer", '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1}">]}', ONE, "stray_characters"),
        ("line ends as escapes", '{\\n"invoice_id": "x",\\n"lines": []}', EMPTY, "escaped_blank"),
        ("a quote behind a backslash", '{"invoice_id": "C:\\", "lines": []}', {"invoice_id": "C:\\", "lines": []},
         "invalid_escape"),
        ("a closer inside a string", '{"lines": [], "invoice_id": "Handles "}" and "]" well"}',
         {"lines": [], "invoice_id": 'Handles "}" and "]" well'}, "unescaped_quote"),
    )
}  # fmt: skip

PACKAGING: dict[str, Slip] = {
    name: (text, INVOICE, value, kind)
    for name, text, value, kind in (
        ("line numbers", ' 9 | {\n10 |  "invoice_id": "x",\n11 |  "lines": []\n12 | }', EMPTY, "line_marks"),
        ("line numbers and tabs", '     1\t{\n     2\t "invoice_id": "x",\n     3\t "lines": []\n     4\t}', EMPTY, "line_marks"),
        ("a diff", '```diff\n@@ -0,0 +1,4 @@\n+{\n+ "invoice_id": "x",\n+ "lines": []\n+}\n```', EMPTY, "diff_marks"),
        ("a quotation", '> {\n>  "invoice_id": "x",\n>  "lines": []\n> }', EMPTY, "line_marks"),
        ("a cell of a table", '{""invoice_id"": ""x"", ""lines"": []}', EMPTY, "doubled_quotes"),
        ("encoded twice", json.dumps(json.dumps(json.dumps(EMPTY))), EMPTY, "double_encoded"),
        ("a tool call", json.dumps({"function": {"name": "f", "arguments": json.dumps(EMPTY)}}), EMPTY, "wrapper"),
        ("a tool call in a chat completion",
         json.dumps({"choices": [{"message": {"tool_calls": [{"function": {"arguments": json.dumps(EMPTY)}}]}}]}), EMPTY,
         "wrapper"),
        ("content blocks", json.dumps([{"type": "text", "text": "Done."}, {"type": "tool_use", "input": EMPTY}]), EMPTY,
         "wrapper"),
        ("prose as a string in an envelope",
         json.dumps({"message": {"content": f"Here:\n```json\n{json.dumps(EMPTY)}\n```"}}), EMPTY, "wrapper"),
        ("two chunks that overlap",
         '{"invoice_id": "x",\n "lines": [{"sku": "a", "qty": 1}, {"sku": "b"\n\nContinuing:\n\n'
         ' "lines": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 2}]}', TWO, "joined_chunks"),
        ("two chunks that overlap, cut in a string",
         '```json\n{"lines": [], "invoice_id": "a number that is long en\n```\nHere is the rest:\n```json\n'
         '"invoice_id": "a number that is long enough"}\n```', {"lines": [], "invoice_id": "a number that is long enough"},
         "joined_chunks"),
    )
} | {
    "items one after another": (
        '{"sku": "a", "qty": 1}\n{"sku": "b", "qty": 2}', LINES, TWO["lines"], "joined_documents"),
}  # fmt: skip

GAPS: dict[str, tuple[str, Any, Any]] = {
    name: (f'{{"invoice_id": "x", "lines": [{{"sku": "a", "qty": 1}}{rest}', INVOICE, ONE)
    for name, rest in (
        ("a comment about the rest", "\n// remaining lines\n]}"),
        ("a comment about more of them", ",\n# 3 more lines follow\n]}"),
        ("a block comment", ",\n/* and so on, as above */\n]}"),
        ("a comment in a page", ",\n<!-- other lines omitted for brevity -->\n]}"),
        ("etc.", ", etc.]}"),
        ("words in quotes", ', "and 3 more"]}'),
        ("a list with an ellipsis", ", [...]]}"),
        ("an object with an ellipsis", ", {...}]}"),
        ("an object with an ellipsis in quotes", ', {"...": "..."}]}'),
        ("an ellipsis and more behind it", ', ..., {"sku": "c", "qty": 3}]}'),
        ("a mark of the chat", ", <|im_end|>"),
        ("a note that the limit was reached", ",\n[Output limit reached]"),
    )
} | {
    "fewer items than announced": (
        '{"invoice_id": "x", "line_count": 2, "lines": [{"sku": "a", "qty": 1}]}', INVOICE, {**ONE, "line_count": 2}),
    "a tag of reasoning in a string of a cut answer": (
        '{"invoice_id": "x</think>(", "lines": [{"sku": "a", "qty": 1}, {"sku": "b"', INVOICE,
        {**ONE, "invoice_id": "x</think>("}),
    "an ellipsis in a field": ('{"invoice_id": "x", "lines": [], "total": ...', INVOICE, EMPTY),
}  # fmt: skip

UNTOUCHED: dict[str, tuple[str, Any, Any]] = {
    name: (json.dumps(value), contract, value)
    for name, contract, value in (
        ("an ellipsis among strings", None, {"a": ["x", "..."]}),
        ("words about the rest in code", DeliveryAnswer, files("// remaining tasks\n...\n")),
        ("an answer inside an answer", DeliveryAnswer, files('{"files": [{"path": "b", "content": ""}]}')),
        ("as many as announced", INVOICE, {**ONE, "line_count": 1}),
        ("fences and tags in a string", DeliveryAnswer, files("```\n</think>\nContinuing:\n```json\n")),
    )
} | {
    "a comment above an item": (
        '{"invoice_id": "x", "lines": [\n// more lines\n{"sku": "a", "qty": 1}]}', INVOICE, ONE),
    "a comment that says something else": (
        '{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1} // other skus are never needed\n]}', INVOICE, ONE),
    "a remark in braces behind the answer": ('{"a": 1}\n\nSee {note: below}.', None, {"a": 1}),
    "a schema before its answer": (
        json.dumps(INVOICE) + "\nSo:\n" + json.dumps(EMPTY), INVOICE, EMPTY),
    "the end of an unclosed thought": (
        f"<think>\nIt is {{}}.\n\nFinal answer:\n{json.dumps(EMPTY)}", INVOICE, EMPTY),
}  # fmt: skip

UNDECIDABLE: dict[str, tuple[str, Any]] = {
    "items behind closers that stand astray": (
        '{"n": 1, "list": [{"a": [\n"b"\n}} ],\n"c": 1},\n{"a": ["second"], "c": 2}\n], "last": "one more thing to say"}', None),
    "JSON in a string, without a contract": ('{"a": "x = {"k": "v", "z": 1}", "b": 2}', None),
    "an answer in a string of an answer": (delivery('{"files": [{"path": "b", "content": "c"}]}'), DeliveryAnswer),
    "a list where items have gone astray": ('{"key": ["a"], ["b"], ["c"], "key3": "value3"}', None),
    "a currency": ('{"invoice_id": "x", "total": $5.20, "lines": []}', INVOICE),
    "a unit": ('{"invoice_id": "x", "lines": [{"sku": "a", "qty": 1 pcs}]}', INVOICE),
    "a template of words": ('{"invoice_id": <id>, "lines": [...]}', INVOICE),
    "a schema alone": (json.dumps(INVOICE), INVOICE),
    "lists of other things": ('{"files": ["src"], "name": "x"}', DeliveryAnswer),
}  # fmt: skip
