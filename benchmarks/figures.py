"""How large the house is and how it hangs together: `make figures`.

Lines are physical lines; a line of code holds a token that is neither a comment nor part of a docstring.
"""

import ast
import gc
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from orchestrator.cli.main import COMMANDS
from orchestrator.settings import Settings

ROOT = Path(__file__).parent.parent
PACKAGES = ("orchestrator", "tests")
SMALL, LONG, LONG_FUNCTION = 120, 500, 60
"""Lines of a module that could be part of its only importer; above which a module, and a function, should say why."""
FOREIGN = re.compile(r"\b(?:DESIGN|STYLE|HOUSE|[Ss]pec)\s+(?:§\s*)?\d+\S*")
"""Reference to a paper that is not in the repository."""
BUILDERS = {"policy", "minor", "major", "critical"}
CODE = re.compile(r"(?:[a-z]+|task_plan)\.[a-z_]+")
NO_CODE = re.compile(r".*\.(?:py|md|txt|html|json|csv|yaml)|test\.command|backlog\.closes")
"""Names of files and settings that look like codes."""
GENERATED = ("events.md", "answers.md", "figures.md")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str
    package: str
    """Dotted name of the folder it lies in."""
    text: str
    tree: ast.Module
    lines: int


def read_modules(package: str) -> list[Module]:
    """Returns the modules below a package; a corpus holds samples, some of them broken on purpose."""
    found = []
    gc.disable()  # trees are many objects, and none of them is garbage: looking for some takes most of the time
    try:
        for path in sorted(path for path in (ROOT / package).rglob("*.py") if "corpus" not in path.parts):
            text = path.read_text(encoding="utf-8")
            name, folder = (".".join(part.relative_to(ROOT).parts) for part in (path.with_suffix(""), path.parent))
            found.append(Module(name.removesuffix(".__init__"), folder, text, ast.parse(text), len(text.splitlines())))
    finally:
        gc.enable()
    return found


def docstring_lines(tree: ast.Module) -> set[int]:
    """Returns the lines of every string that stands alone as a statement (docstrings, also those of attributes)."""
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    alone = (one for one in constants if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return {line for one in alone for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}


def count_code(module: Module) -> tuple[int, int]:
    """Returns how many lines hold code, and how many comments there are."""
    code: set[int] = set()
    comments = 0
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        comments += token.type == tokenize.COMMENT
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstring_lines(module.tree)), comments


def read_imports(modules: list[Module]) -> dict[str, set[str]]:
    """Returns which of the modules each one imports, anywhere in its text: imports inside functions count."""
    names = {module.name for module in modules}
    found: dict[str, set[str]] = {module.name: set() for module in modules}
    for module in modules:
        for node in ast.walk(module.tree):
            wanted: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                wanted = [name if name in names else node.module for name in inner]
            elif isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            found[module.name] |= (set(wanted) & names) - {module.name}
    return found


def find_cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Returns the groups of modules that import each other (strongly connected components, Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in number:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == number[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            groups.extend([sorted(group)] if len(group) > 1 else [])

    for name in imports:
        if name not in number:
            visit(name)
    return groups


def count_long_functions(modules: list[Module]) -> int:
    """Returns how many functions and methods are longer than advised."""
    nodes = (node for module in modules for node in ast.walk(module.tree))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return sum((node.end_lineno or 0) - node.lineno >= LONG_FUNCTION for node in functions)


def print_figures(package: str) -> None:
    """Prints the figures of one package."""
    modules = read_modules(package)
    imports = read_imports(modules)
    importers = {name: {other for other, wanted in imports.items() if name in wanted} for name in imports}
    home = {module.name: module.package for module in modules}
    plain = [module for module in modules if module.name != module.package]  # no `__init__.py`
    alone = [module for module in plain if len(importers[module.name]) == 1]
    small = [one for one in alone if one.lines <= SMALL and home[min(importers[one.name])] == one.package]
    counts = [count_code(module) for module in modules]
    lines, comments = sum(module.lines for module in modules), sum(comment for _, comment in counts)
    folder, size = Counter(module.package for module in plain).most_common(1)[0]
    defined = (node for module in modules for node in module.tree.body if isinstance(node, DEFINITIONS))
    names = Counter(node.name for node in defined if node.name[0] != "_")
    twice = [count for count in names.values() if count > 1]
    cycles = find_cycles(imports)
    rows = {
        "modules": len(modules),
        "lines": lines,
        "lines of code": sum(code for code, _ in counts),
        f"modules above {LONG}, functions above {LONG_FUNCTION} lines": f"{sum(m.lines > LONG for m in modules)}, "
        f"{count_long_functions(modules)}",
        "one importer": len(alone),
        f"… in their package, at most {SMALL} lines": len(small),
        "largest folder (modules flat)": f"{size} ({folder})",
        "public definitions named twice or more": f"{len(twice)} names, {sum(twice)} definitions",
        "comments per 1,000 lines": f"{1000 * comments / lines:.1f}",
        "import cycles": f"{len(cycles)} {[len(cycle) for cycle in cycles] or ''}".strip(),
        "references to papers not here": sum(len(FOREIGN.findall(module.text)) for module in modules),
    }
    print(f"{package}/")
    print("\n".join(f"  {name:<45} {value}" for name, value in rows.items()))


def count_settings(model: type[BaseModel]) -> int:
    """Returns how many names a person may set; a mapping with names of the person's own is one."""
    kinds = [field.annotation for field in model.model_fields.values()]
    return sum(count_settings(one) if isinstance(one, type) and issubclass(one, BaseModel) else 1 for one in kinds)


def count_codes(modules: list[Module]) -> int:
    """Returns how many codes of findings are written out where findings are built or compared."""
    texts = [
        node.value
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    ]
    calls = [node for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.Call) and node.args]
    built = {
        node.args[0].value.partition(".")[0]
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id in BUILDERS
        and isinstance(node.args[0], ast.Constant) and CODE.fullmatch(str(node.args[0].value))
    }  # fmt: skip
    return len({text for text in texts if text.partition(".")[0] in built and not NO_CODE.fullmatch(text)})


def count_lines(folder: str, suffix: str, without: tuple[str, ...] = ()) -> int:
    """Returns the lines of all files of a kind below a folder of the repository."""
    paths = (path for path in (ROOT / folder).rglob(f"*{suffix}") if path.name not in without)
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def print_surface() -> None:
    """Prints how much there is to learn for a person who uses the program."""
    rows = {
        "settings": count_settings(Settings),
        "commands": len(COMMANDS),
        "finding codes": count_codes(read_modules("orchestrator")),
        "docs/, lines of Markdown (without generated pages)": count_lines("docs", ".md", GENERATED),
        "benchmarks/, lines": count_lines("benchmarks", ".py"),
    }
    print("surface")
    print("\n".join(f"  {name:<45} {value}" for name, value in rows.items()))


if __name__ == "__main__":
    for package in PACKAGES:
        print_figures(package)
    print_surface()
