"""The same sprint without any disturbance, run once."""

import pytest

from tests.durability.driver import Aftermath, Bench


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    bench = Bench(tmp_path_factory.mktemp("undisturbed"))
    ended = bench.finish()
    assert ended.code == 0, ended
    return bench.aftermath(ended.code)
