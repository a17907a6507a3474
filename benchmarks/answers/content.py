"""What delivered files hold: pieces of our samples and of Python's own library, so faults meet real code."""

import ast
import importlib.util
import random
from functools import cache
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
MODULES = ("textwrap", "shlex", "csv", "configparser", "fnmatch", "string", "json.encoder", "html.parser", "glob")
"""Modules whose functions and classes are delivered as Python files; they are as old as the language itself."""
NOUNS = ("book", "order", "ticket", "garden", "recipe", "parcel", "concert", "invoice")
PIECE = range(150, 4000)
"""Characters a piece of Python may have."""


@cache
def python_pieces() -> tuple[str, ...]:
    """Functions and classes of the standard library, comments included."""
    pieces = []
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).read_text(encoding="utf-8")
        lines = source.splitlines(keepends=True)
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                pieces.append("".join(lines[node.lineno - 1 : node.end_lineno]))
    return tuple(piece for piece in pieces if len(piece) in PIECE)


@cache
def samples() -> dict[str, str]:
    """Our own files by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(SAMPLES.iterdir())}


def piece(rng: random.Random) -> tuple[str, str]:
    """A file's ending and text: some paragraphs of a sample about another noun, or some Python."""
    if rng.random() < 0.3:
        return "py", "\n\n".join(rng.sample(python_pieces(), rng.randint(1, 3)))
    name = rng.choice(sorted(samples()))
    paragraphs = samples()[name].rstrip("\n").split("\n\n")
    first = rng.randrange(len(paragraphs))
    chosen = paragraphs[first : first + rng.randint(1, len(paragraphs))]
    noun = rng.choice(NOUNS)
    text = "\n\n".join(chosen).replace("book", noun).replace("Book", noun.capitalize())
    return name.rpartition(".")[2], text + "\n"


def suite_text(rng: random.Random) -> tuple[str, str]:
    """The same for a test file."""
    if rng.random() < 0.5:
        noun = rng.choice(NOUNS)
        return "test.js", samples()["books.test.js"].replace("book", noun)
    return "py", "\n\n".join(rng.sample(python_pieces(), rng.randint(1, 2)))
