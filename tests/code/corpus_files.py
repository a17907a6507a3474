"""Sound files as models write them, by language, and what breaks them: in every language, and in one."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
SOUND = sorted(FOLDER.glob("*/*"))
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def text_of(path: Path) -> str:
    """What stands in a file of the corpus."""
    return path.read_text(encoding="utf-8")


def spelled_out(name: str, text: str) -> tuple[str, int | None]:
    return text.replace("\n", "\\n"), 1


def fenced(name: str, text: str) -> tuple[str, int | None]:
    return f"```\n{text}```\n", 1


def fence_at_the_end(name: str, text: str) -> tuple[str, int | None]:
    return f"{text}```\n", text.count("\n") + 1


def patch(name: str, text: str) -> tuple[str, int | None]:
    lines = text.splitlines()[:7]
    return "\n ".join([f"--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,4 @@", *lines[:6]]) + f"\n+{lines[6]}\n", 1


def pluses(name: str, text: str) -> tuple[str, int | None]:
    return "".join(f"+{line}\n" for line in text.splitlines()), 1


def merge(name: str, text: str) -> tuple[str, int | None]:
    lines = text.splitlines()
    at = len(lines) // 2
    ours, theirs = lines[at : at + 2]
    parts = [*lines[:at], "<<<<<<< HEAD", ours, "=======", theirs, ">>>>>>> other", *lines[at + 1 :]]
    return "\n".join(parts) + "\n", at + 1


def prose_before(name: str, text: str) -> tuple[str, int | None]:
    return f"Here's the updated `{name}` file:\n\n{text}", 1


def prose_after(name: str, text: str) -> tuple[str, int | None]:
    return f"{text}\nThis file now handles errors. Let me know if you need more!\n", text.count("\n") + 2


def entities(name: str, text: str) -> tuple[str, int | None]:
    return re.sub(r'[&<>"]', lambda found: ENTITIES[found[0]], text), None


EVERYWHERE: tuple[Callable[[str, str], tuple[str, int | None]], ...] = (
    spelled_out, fenced, fence_at_the_end, patch, pluses, merge, prose_before, prose_after, entities,
)  # fmt: skip
"""What models leave in files of any language: text and name → the broken text, and the line where it is broken."""

BREAKS: dict[str, tuple[tuple[str, str, int | None], ...]] = {
    "go/handler.go": (
        ("limit,", "limit", 34),
        ("http.StatusInternalServerError", "", 60),
        ('et"`', 'et"', None),
        ("}\n\t\tw", "w", 45),
        ('found"', "found", 13),
    ),
    "go/handler_test.go": (("\t\t})", "\t\t\t}\n\t\t})", None), (" 0},", " 0}", None)),
    "go/pool.go": (
        ("\t\twg.A", "\t\t...\n\t\twg.A", 45),
        ("line)", "line", 30),
        ('"sync"', "“sync”", 8),
        ("type", "/* numbers\ntype", 12),
        (")\n}\n", ")\n\n", 37),
    ),
    "java/ParcelController.java": (
        ("IT))", "IT)", None),
        ("et();", "et()", 36),
        ("}\n        Parcel", "Parcel", 33),
        (". */", ".", 12),
        ('ls/"', "ls/", 44),
    ),
    "java/Shapes.java": (
        ("            this.s", "            ...\n            this.s", 30),
        (".0),", ".0)", 24),
        ('"large" : "small"', "“large” : “small”", 52),
        ('""";', "", None),
        (";\n}\n", ";\n\n", 9),
    ),
    "java/StoreTest.java": (("\n    @Test\n    void f", "    }\n\n    @Test\n    void f", None), ("t())", "t()", 22)),
    "javascript/app.js": (
        ("   form", "   ...\n    form", 22),
        ("!todos[item.dataset.index].done", "", 30),
        ("  }\n\n  r", "\n  r", 41),
    ),
    "javascript/cart.mjs": (
        ("\n  as", "  }\n\n  as", None),
        (" get", " /* how many\n  get", 16),
        ("json'", "json", 4),
        ("pieces`", "pieces", None),
    ),
    "javascript/orders.js": (
        ("l(),", "l()", None),
        ("'../db'", "‘../db’", 5),
        ("}\n    const", "const", 30),
        ("s })", "s }", 21),
    ),
    "json/openapi.json": (
        ('  "x', '  ...\n  "x', 26),
        ("heavy\\nor", "heavy\nor", 20),
        ('"limit"', "“limit”", 9),
        ("  ],", "  ", 11),
        ('parcels",', "parcels,", 7),
    ),
    "json/package.json": (
        ('ts": {', 'ts": { // what can be run', 6),
        ("true,", "true", 5),
        ('"parcel-desk"', "'parcel-desk'", 2),
        ('=20"', '=20",', 19),
        ('"engines"', "engines", 18),
    ),
    "json/tsconfig.json": (('22",', '22"', 5), ('  },\n  "', '\n  "', None)),
    "python/api.py": (("ne]:", "ne]", 25), ("y'\")", "y'\"", 52)),
    "python/models.py": (("ook)", "ook) Author", 42), ('"""\n\n', "\n\n", 6)),
    "python/report.py": (("        return s", "    return s", 19), (' file"', " file", 42)),
    "react/Board.tsx": (
        ("button>\n            </li", "li>\n            </button", 43),
        ("error}", "error", None),
        ("  </ul>\n      ", "", None),
    ),
    "react/LoginForm.jsx": (
        ("  </>\n    ", "", None),
        ("l} onChange={change} />", "l} onChange={change}>", None),
        ('"error"', "“error”", 38),
        ("}\n    try", "try", 16),
    ),
    "react/page.tsx": (("/header", "/head", 27), ("tring()}>", "tring()>", None), ("       )}", "       }", None)),
    "rust/lexer.rs": (
        ("  self", "  ....\n            self", 27),
        ('"plus"', "“plus”", 55),
        (" u8>", " u8", None),
        ('.0}"', ".0}", None),
    ),
    "rust/main.rs": (
        ("ze)]", "ze)", 5),
        ("String,", "String", None),
        ("ut parcels = desk.parcels.lock().unwrap();", "ut parcels = desk.parcels.lock().unwrap()", 28),
        ("}\n    parcels", "parcels", 29),
        ("c![]", "c![", 38),
    ),
    "rust/store.rs": (("r) ->", "r) -", 43), ("/// ", "/* ", 4), (";\n    }\n}\n", ";\n    }\n\n", 49)),
    "shell/backup.sh": (
        ("-%d`", "-%d", None),
        ("SQL\nmv", "mv", 21),
        ("done\n", "", None),
        ('b" ]; then', 'b" ];', None),
    ),
    "shell/deploy.sh": (
        ("1; }", "1;", None),
        ("esac\ndone", "done", 29),
        ("fi\n\n", "\n", 35),
        ('S}s"', "S}s", 48),
        ("+%T)", "+%T", None),
    ),
    "shell/entrypoint.sh": (
        ('"); do', '"); {{ do', None),
        ("}\n\ni", "\ni", 4),
        ("& npm", "& && npm", 18),
        (" ]] ", " ", None),
    ),
    "toml/Cargo.toml": (
        (' version = "0.12", features = ["json"] ', '\n  version = "0.12"\n  features = ["json"]\n', None),
        ('"2021"', "v2021", 4),
        ("features]", "features", 8),
    ),
    "toml/project.toml": (
        ('15",', '15"', 14),
        ("project.scripts", "project", 21),
        ('.6"]', '.6"', None),
        ('.30"', ".30", 15),
    ),
    "toml/settings.toml": (
        ("title", "// the title\ntitle", 1),
        ('"0.0.0.0"', "“0.0.0.0”", 5),
        ("?'''", "?", None),
        ("debug =", "debug:", 8),
    ),
    "typescript/client.ts": (("method,", "method", 18), ("<Note[]>", "<Note[]", None), ("3000'", "3000", 1)),
    "typescript/schema.ts": (("'zod'", "‘zod’", 1), ("rk']", "rk'", 10), ("});\n", "\n", 9)),
    "typescript/users.service.ts": (
        (" }))", " })", 38),
        ("number", "", 8),
        ("}\n    this", "this", 39),
        ("  }\n}", "}", 46),
    ),
    "yaml/compose.yaml": ((" volumes:", " volumes", None), ("t''s", "t's", 17), ('m"}}', 'm"}', None)),
    "yaml/stack.yaml": (("!Sub", "@Sub", 13), ("     Value", "    Value", 16)),
    "yaml/workflow.yml": (
        ("Test", "Test: all", 28),
        ("  matrix", " matrix", 15),
        ("    runs", "\truns", 12),
        ("latest]", "latest", None),
        ('true"', "true", None),
    ),
}
"""File → what is put in place of what, and the line where that breaks it; None where a reader could not tell either."""


def broken(language: str) -> Iterator[tuple[Path, str, int | None]]:
    """The sound file, a broken text of it and the line, once per entry of `BREAKS`."""
    for name, breaks in BREAKS.items():
        if name.startswith(f"{language}/"):
            text = text_of(FOLDER / name)
            for old, new, line in breaks:
                assert text.count(old) == 1
                yield FOLDER / name, text.replace(old, new), line
