"""Is a JavaScript text well-formed? By its syntax tree."""

from orchestrator.domain.findings import Finding, Where, major
from orchestrator.syntax.javascript_tree import below, node_text, root

SUFFIXES = (".js", ".mjs", ".cjs")
"""Files whose whole grammar is known here (JSX included; TypeScript is another language)."""


def problem(text: str, path: str, *, code: str = "content.syntax") -> Finding | None:
    """A major finding at the first place that does not parse, else None. Never raises."""
    tree = root(text)
    if not tree.has_error:
        return None
    bad = next((node for node in below(tree) if node.is_missing or node.type == "ERROR"), tree)
    seen = " ".join(node_text(bad).split())[:60]
    said = f"`{bad.type}` is missing" if bad.is_missing else f"unexpected `{seen}`" if seen else "unexpected text"
    place = Where(file=path, line=bad.start_point.row + 1, column=bad.start_point.column + 1)
    return major(
        code,
        f"JavaScript does not parse: {said}",
        where=place,
        fix="Write the whole file anew, each statement ended by a semicolon.",
    )
