"""The same sprint without any disturbance, run once; and the zygote's end."""

from collections.abc import Iterator

import pytest

from tests.durability.driver import Aftermath, Bench
from tests.zygote import zygote


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    bench = Bench(tmp_path_factory.mktemp("undisturbed"))
    ended = bench.finish()
    assert ended.code == 0, ended
    return bench.aftermath(ended.code)


@pytest.fixture(autouse=True, scope="session")
def _zygote_ends() -> Iterator[None]:
    yield
    if zygote.cache_info().currsize:
        zygote().close()
