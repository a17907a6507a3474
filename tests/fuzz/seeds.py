"""What the fuzzer begins with: broken answers of the benchmark's corpus for raw texts, plain bytes for built ones."""

import random
from pathlib import Path

from benchmarks.answers import corpus
from tests.fuzz.source import TOKENS
from tests.fuzz.targets import CONTRACTS

RAW = ("invariants",)
CONTRACT_NUMBER = {"breakdown": 1, "delivery": 2, "suite": 3}
SHORT = 900
BUILT = 40


def _raw_seeds() -> list[bytes]:
    assert len(CONTRACTS) == 1 + len(CONTRACT_NUMBER)
    cases = corpus.cases(5, 600)
    return [
        bytes([CONTRACT_NUMBER[case.kind.contract]]) + encoded(case.text) for case in cases if len(case.text) < SHORT
    ]


def encoded(text: str) -> bytes:
    """Bytes that `Source` reads as `text`, as far as it has words for it."""
    words = {token: 128 + (at - 128) % len(TOKENS) for at, token in enumerate(TOKENS)}
    return bytes(ord(char) if ord(char) < 128 else words.get(char, ord("?")) for char in text)


def seeds(target: str) -> list[bytes]:
    """The beginnings for one target, always the same."""
    if target in RAW:
        return _raw_seeds()
    rng = random.Random(target)
    tokens = [rng.randbytes(rng.randint(10, 300)) for _ in range(BUILT)]
    words = [bytes(rng.choices(range(32, 127), k=rng.randint(10, 300))) for _ in range(BUILT)]
    return [b"", *tokens, *words]


def write_seeds(target: str, folder: Path) -> None:
    """A file per seed."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (folder / f"seed-{number:03d}").write_bytes(seed)
