"""Readings of texts that are done once per text: from story to story a project changes by a few files."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, TypeVar

T = TypeVar("T")

TEXTS = 4096
"""How many results a reading keeps: those of some sprints' projects at once."""


class Remembered(Generic[T]):
    """`read(text, path)`, its result kept by the hash of path and text; neither is held itself.

    Results are shared by all who ask, from any thread: read them, never change them.
    """

    def __init__(self, read: Callable[[str, str], T], size: int = TEXTS) -> None:
        self._read, self._size = read, size
        self._known: OrderedDict[bytes, T] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str, path: str) -> T:
        """As `read`; raises what it raises, and forgets nothing for that."""
        key = blake2b(f"{path}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        result = self._read(text, path)
        with self._lock:
            self._known[key] = result
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        return result
