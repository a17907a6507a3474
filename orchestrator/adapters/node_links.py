"""A tree's own `node_modules` while something runs in it: links to the packages of a layer, and room for caches."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from orchestrator.adapters.command_runner import remove_tree
from orchestrator.adapters.node_layers import MODULES

_LAYER = ".layer"
"""In a folder of ours: a link to the layer's. What else stands there is the project's own."""
_used = set[str]()
"""Trees that something runs in."""


@contextlib.asynccontextmanager
async def linked(root: Path, modules: Path | None) -> AsyncIterator[None]:
    """`root`/node_modules has links to what is in `modules` meanwhile (None: nothing is done); the same in the folders
    of the workspace's other projects. The tree is left as it was.

    It is a folder and no link, for tools keep caches in it. A folder or link of that name in the tree is the project's
    own and stays in place.
    """
    if modules is None or str(root) in _used:
        yield
        return
    _used.add(str(root))
    try:
        made = await asyncio.to_thread(_link_all, root, modules.parent)
        try:
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, made))
    finally:
        _used.discard(str(root))


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        remove_tree(folder)


def _link_all(root: Path, layer: Path) -> list[Path]:
    layer = layer.resolve()
    members = json.loads((layer / "members.json").read_text(encoding="utf-8"))
    made = []
    for folder in ("", *members):
        place = root / folder / MODULES
        if (place / _LAYER).is_symlink():  # a killed process left it
            remove_tree(place)
        inside = (root / folder).is_dir() and (root / folder).resolve().is_relative_to(root.resolve())
        if inside and (layer / folder / MODULES).is_dir() and not os.path.lexists(place):
            made.append(place)
            _link(layer, f"{folder}/{MODULES}" if folder else MODULES, root, bool(members))
            (place / _LAYER).symlink_to(layer / folder / MODULES)
    return made


def _link(layer: Path, folder: str, root: Path, members: bool) -> None:
    """What leads to a project of the workspace leads to the tree's; everything else to the layer."""
    (root / folder).mkdir()
    with os.scandir(layer / folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and (entry.name[:1] == "@" or (members and entry.name == ".bin")):
                _link(layer, f"{folder}/{entry.name}", root, members)
                continue
            target = layer / folder / entry.name
            if entry.is_symlink():
                led = os.path.relpath(os.path.realpath(entry.path), layer)
                if MODULES not in led.split("/") and not led.startswith(".."):
                    target = root / led
            (root / folder / entry.name).symlink_to(target)
