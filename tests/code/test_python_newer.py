"""Python that is newer than ours is read as what it stands for, and never says less than it runs."""

import pytest

from orchestrator.code.python.imports import imports
from orchestrator.code.python.source import as_older, exported_names, parse_python

READ = [
    "type A[T] = list[T]\ntype B = A[int]\n",
    "def f[T](x: T) -> T:\n    return x\n",
    "async def f[*Ts, **P]():\n    pass\n",
    "class A[\n    T: (int, str) = int,\n](B):\n    def m[U](self): ...\n",
    "try:\n    f()\nexcept A, b.B:\n    pass\n",
    "try:\n    f()\nexcept* A, B:\n    pass\n",
    "x = f'{a['b']} {{}} {c!r:>{w}}'\n",
    "x = f'{\n    a  # why\n}'\n",
    "x = ('a'\n  f'{a['ü']}'  # why\n  'z')\n",
    'x = f"""{d["""a"""]}\n{b}\n"""\n',
    "x = f'{f'{f'{a}'}'}'\n",
    "x = rf'\\d{a['b']}'\n",
    "x = t'{a} {b:{'c'}}'\n",
]


@pytest.mark.parametrize("text", READ)
def test_it_has_a_tree_in_the_same_lines(text: str) -> None:
    assert imports(f"{text}import json\n") is not None
    older = as_older(f"{text}import json\n")
    assert older.count("\n") == text.count("\n") + 1
    (item,) = imports(older) or ()
    assert (item.module, item.line) == ("json", text.count("\n") + 1)


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("def f[T]():\n    import evil\n", "evil"),
        ("x = f'{__import__('evil')}'\n", "evil"),
        ("x = f'{a['b']:>{__import__('evil').width}}'\n", "evil"),
        ("x = f'{a['b']}' f'{f'{(lambda: __import__('evil'))()}'}'\n", "evil"),
        ("x = t'{__import__('evil')}'\n", "evil"),
    ],
)
def test_what_it_imports_is_seen(text: str, module: str) -> None:
    (item,) = imports(as_older(text)) or ()
    assert item.module == module


@pytest.mark.parametrize(
    "text", ["def f[T: __import__('evil')]():\n    pass\n", "class A[T = g()]: ...\n", "def f(:\n", "x = f'{a['b'}'\n"]
)
def test_what_cannot_be_written_so_stays(text: str) -> None:
    assert as_older(text) == text


def test_what_it_offers() -> None:
    assert exported_names("type A[T] = list[T]\nclass B[T]: ...\ndef f[T](x: T) -> T: ...\n") == ("A", "B", "f")


@pytest.mark.parametrize("text", ["def a[\n" * 3000, "f'{" * 3000, "x = f'{" + "f'{" * 20 + "a" + "}'" * 20 + "}'\n"])
def test_hostile_text_is_answered_soon_and_never_a_crash(text: str) -> None:
    assert isinstance(as_older(text), str)
    parse_python(text)
