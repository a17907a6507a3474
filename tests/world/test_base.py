"""What the base commits of real projects came to before anything was paid for, and what their tests were run with."""

from pathlib import Path

from orchestrator.test_runners.report import Selection
from tests.test_runners.test_pytest_runner import runner_in, tree
from tests.world.case import Case, table

TWO = "def test_one():\n    assert 1 == 1\n\n\ndef test_two():\n    assert 2 == 2\n"


def options(text: str, file: str = "pytest.ini", section: str = "pytest") -> dict[str, str]:
    return {file: f"[{section}]\n{text}\n", "tests/test_story.py": TWO}


@table(
    Case(name="failed first", given=options("addopts = --ff"), right=2, seen="pytest's documentation"),
    Case(name="last failed", given=options("addopts = --lf"), right=2, seen="pytest's documentation"),
    Case(name="new first", given=options("addopts = --nf"), right=2, seen="pytest's documentation"),
    Case(name="stepwise", given=options("addopts = --sw", "tox.ini"), right=2, seen="pytest's documentation"),
    Case(
        name="strict with a cache of its own",
        given=options("addopts = --strict-config --ff\ncache_dir = .cache", "setup.cfg", "tool:pytest"),
        right=2,
        seen="a settings file of a company",
    ),
    Case(
        name="strict without the cache",
        given=options("addopts = --strict-config -p no:cacheprovider"),
        right=2,
        seen="a settings file of a company",
    ),
    Case(
        name="a fixture reads the cache",
        given={
            **options(""),
            "tests/test_story.py": TWO + "\n\ndef test_cache(cache):\n    assert cache is not None\n",
        },
        right=3,
        seen="pytest's documentation",
    ),
)
async def test_options_that_need_pytests_cache_are_known(case: Case, tmp_path: Path) -> None:
    root = tree(tmp_path, case.given)
    for files in (["tests/test_story.py"], None):
        report = await runner_in(tmp_path).run(root, Selection("S", files))
        assert (report.problem, report.passed) == (None, case.right), report.output
    assert not list(root.rglob("*cache")), "nothing is left in the tree"
