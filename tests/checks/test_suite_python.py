# ruff: noqa: E501 (a suite is one line here, so that the lists can be read)
"""Suites for pytest as models write them: sound ones pass without a word, and what shows nothing is refused."""

import pytest

from orchestrator.checks.suite import check_suite
from orchestrator.checks.suite_project import Project
from orchestrator.domain.testing import TestSuite as Suite

SHOP = "def price(n):\n    return n * 2\n\n\nasync def load():\n    return 1\n\n\nclass Cart:\n    pass\n"
PROJECT = Project(
    files=frozenset({"src/shop/__init__.py", "src/shop/cart.py", "cli.py", "pages/index.html"}),
    sources={"src/shop/cart.py": SHOP},
    packages=frozenset({"pytest-asyncio", "httpx"}),
)
HEAD = "import pytest\nfrom unittest import mock\nfrom shop import cart\nfrom shop.cart import price\n\n\n"


def check(text: str, project: Project = PROJECT) -> list[tuple[str, str]]:
    suite = Suite(test_file="tests/test_a.py", test_content=text)
    found = check_suite(suite, required_criteria=None, project=project)
    assert all(finding.fix and (finding.where.line or finding.code == "suite.no_subject") for finding in found)
    return [(finding.code.removeprefix("suite."), str(finding.severity)) for finding in found]


def body(text: str) -> str:
    return f"{HEAD}def test_a(tmp_path, monkeypatch, capsys, snapshot=None, self=None):\n    {text}\n"


SOUND_BODIES = [
    "assert price(2) == 4",
    "assert price(2) == price(2)",
    "with pytest.raises(ValueError, match='negative'):\n        price(-1)",
    "pytest.raises(ValueError, price, -1)",
    "with pytest.warns(DeprecationWarning):\n        price(1)",
    "with pytest.raises(ValueError) as raised:\n        raise ValueError(price(1))\n    assert '2' in str(raised.value)",
    "bell = mock.Mock()\n    cart.ring(bell)\n    bell.assert_called_once_with(1)",
    "assert price(3) == snapshot",
    "snapshot.assert_match(price(3))",
    "out = capsys.readouterr().out\n    assert price(1) and 'total' in out",
    "try:\n        price(-1)\n    except ValueError as error:\n        assert 'negative' in str(error)\n"
    "    else:\n        pytest.fail('no error')",
    "try:\n        assert price(1)\n    finally:\n        cart.close()",
    "if price(2) != 4:\n        raise AssertionError('not four')",
    "for n in (1, 2):\n        assert price(n) == 2 * n",
    "monkeypatch.setattr('time.time', lambda: 5)\n    assert cart.age() == 5",
    "monkeypatch.setattr(cart, 'now', lambda: 5)\n    assert cart.age() == 5",
    "assert len(cart.rows()) >= 1",
    "assert price(1) in [2, 3]",
    "assert isinstance(price(1), int)",
    "assert price(1) is not None and price(2) > price(1)",
    "assert not cart.rows()",
    "def worker(n):\n        assert price(n) == 2\n    cart.each([1], worker)",
    "file = tmp_path / 'a.csv'\n    cart.save(file)\n    assert file.read_text() == 'a'",
    "assert all(price(n) for n in (1, 2))",
    "x = price(1)\n    assert x == 2 or x == 3",
    "self.assertRaises(ValueError, price, -1)",
]
SOUND_FILES = [
    HEAD + "@pytest.mark.parametrize(('n', 'total'), [(1, 2), (2, 4)])\ndef test_a(n, total):\n    assert price(n) == total\n",
    HEAD + "class TestPrice:\n    def test_a(self):\n        self.check(1)\n\n"
    "    def check(self, n):\n        assert price(n) == 2 * n\n",
    "import unittest\n\nfrom shop.cart import price\n\n\nclass PriceTest(unittest.TestCase):\n"
    "    def test_a(self):\n        with self.subTest('one'):\n            self.assertEqual(price(1), 2)\n",
    "import unittest\n\nfrom shop.cart import load\n\n\nclass LoadTest(unittest.IsolatedAsyncioTestCase):\n"
    "    async def test_a(self):\n        self.assertEqual(await load(), 1)\n",
    "import pytest\n\nfrom shop.cart import load\n\n\n@pytest.mark.asyncio\nasync def test_a():\n    assert await load() == 1\n",
    "import pytest\n\nfrom shop.cart import load\n\npytestmark = pytest.mark.anyio\n\n\nasync def test_a():\n    assert await load()\n",
    "import asyncio\n\nfrom shop.cart import load\n\n\ndef test_a():\n    assert asyncio.run(load()) == 1\n",
    "import asyncio\n\nfrom shop.cart import load\n\n\ndef test_a():\n"
    "    async def steps():\n        await asyncio.sleep(0)\n        assert await load() == 1\n\n    asyncio.run(steps())\n",
    "from hypothesis import given\nfrom hypothesis import strategies as st\nfrom shop.cart import price\n\n\n"
    "@given(st.integers())\ndef test_a(n):\n    assert price(n) == 2 * n\n",
    "import subprocess\nimport sys\n\n\ndef test_a():\n    done = subprocess.run([sys.executable, 'cli.py'], check=False)\n"
    "    assert done.returncode == 0\n",
    "from pathlib import Path\n\n\ndef test_a():\n    assert '<h1>' in Path('pages/index.html').read_text()\n",
    "from fastapi.testclient import TestClient\nfrom shop.app import app\n\nclient = TestClient(app)\n\n\n"
    "def test_a():\n    assert client.get('/items').status_code == 200\n",
    "import httpx\nimport pytest\nfrom shop.app import app\n\n\n@pytest.mark.anyio\nasync def test_a():\n"
    "    transport = httpx.ASGITransport(app=app)\n"
    "    async with httpx.AsyncClient(transport=transport, base_url='http://shop.example') as client:\n"
    "        reply = await client.get('https://shop.example/items')\n    assert reply.status_code == 200\n",
    "import httpx\nimport pytest\nfrom shop.app import app, served\n\n\ndef test_a():\n    client = httpx.Client(transport=served)\n"
    "    assert client.get('/').status_code == 200\n\n\n@pytest.mark.anyio\nasync def test_b():\n"
    "    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:\n"
    "        assert (await client.get('/')).status_code == 200\n",
    "import requests\nfrom shop.app import Server\n\n\ndef test_a():\n    with Server() as (host, port):\n"
    "        assert requests.get(f'http://{host}:{port}/', timeout=5).ok\n",
    "import requests\n\n\ndef test_a(server):\n    assert requests.get(server.url, timeout=5).ok\n",
    "import requests\n\n\ndef test_a(base_url):\n    assert requests.get(f'{base_url}/items', timeout=5).ok\n",
    "import requests\nimport responses\nfrom shop import cart\n\n\n@responses.activate\ndef test_a():\n"
    "    responses.get('https://rates.example/x', json={})\n    assert cart.rates(requests.get('https://rates.example/x'))\n",
    "from shop.cart import price\nfrom tests.helpers import check_price\n\n\ndef test_a():\n    check_price(price(1))\n",
    HEAD + "@pytest.fixture\ndef looks(tmp_path):\n    def look(n):\n        assert price(n) == 2\n\n    return look\n\n\n"
    "def test_a(looks):\n    looks(1)\n",
    HEAD + "def is_double(n):\n    if price(n) != 2 * n:\n        pytest.fail('no')\n\n\ndef test_a():\n    is_double(1)\n",
    "import pytest_check as check\nfrom shop.cart import price\n\n\ndef test_a():\n    check.equal(price(1), 2)\n",
    "def test_a(client):\n    assert client.get('/').status_code == 200\n",
    HEAD + "def run(*words):\n    return cart.main(list(words))\n\n\ndef test_a():\n    assert run('a') == 0\n",
    HEAD + "@mock.patch('shop.cart.now', return_value=3)\ndef test_a(now):\n    assert cart.age() == 3\n    now.assert_called()\n",
]  # fmt: skip


@pytest.mark.parametrize("text", [*map(body, SOUND_BODIES), *SOUND_FILES])
def test_sound_suites_pass_without_a_word(text: str) -> None:
    assert check(text) == []


REFUSED_BODIES = [
    ("price(2) == 4", "no_assertion"),
    ("return price(2) == 4", "no_assertion"),
    ("price(2)\n    return\n    assert price(2) == 4", "no_assertion"),
    ("if 0:\n        assert price(2) == 4", "no_assertion"),
    ("while False:\n        assert price(2) == 4", "no_assertion"),
    ("for n in []:\n        assert price(n) == 4", "no_assertion"),
    ("for n in range(0):\n        assert price(n) == 4", "no_assertion"),
    ("def never():\n        assert price(2) == 4\n    price(2)", "no_assertion"),
    ("never = lambda: pytest.fail('x')\n    price(2)", "no_assertion"),
    ("def fake(n):\n        assert n == 2\n    monkeypatch.setattr(cart, 'now', fake)\n    price(2)", "no_assertion"),
    ("bell = mock.Mock(side_effect=lambda n: None)\n    price(2)", "no_assertion"),
    ("try:\n        assert price(2) == 4\n    except AssertionError:\n        print('no')", "no_assertion"),
    ("try:\n        assert price(2) == 4\n    except Exception:\n        assert True", "always_true"),
    ("try:\n        price(2)\n    except ValueError as error:\n        assert 'x' in str(error)", "no_assertion"),
    ("import contextlib\n    with contextlib.suppress(Exception):\n        assert price(2) == 4", "no_assertion"),
    ("print(price(2))", "no_assertion"),
    ("assert True", "always_true"),
    ("assert 1 == 1", "always_true"),
    ("assert 2 > 1", "always_true"),
    ("assert 'a' in 'abc'", "always_true"),
    ("x = price(2)\n    assert x == x", "always_true"),
    ("x = price(2)\n    assert len(x) == len(x)", "always_true"),
    ("assert 'price is two'", "always_true"),
    ("assert f'price is {price(2)}'", "always_true"),
    ("assert (price(2) == 4, 'not four')", "always_true"),
    ("assert [price(2)]", "always_true"),
    ("assert len(cart.rows()) >= 0", "always_true"),
    ("assert len(cart.rows()) > -1", "always_true"),
    ("assert 0 <= len(cart.rows())", "always_true"),
    ("assert len(cart.rows()) is not None", "always_true"),
    ("x = price(2)\n    assert x or True", "always_true"),
    ("x = price(2)\n    assert x or not x", "always_true"),
    ("x = price(2)\n    assert x is not None or x is None", "always_true"),
    ("x = price(2)\n    assert x in [x]", "always_true"),
    ("assert isinstance(price(2), object)", "always_true"),
    ("assert not None", "always_true"),
    ("assert all([])", "always_true"),
    ("assert lambda: price(2) == 4", "always_true"),
    ("assert (n for n in cart.rows())", "always_true"),
    ("self.assertTrue(True)", "always_true"),
    ("self.assertEqual(1, 1)", "always_true"),
    ("self.assertGreaterEqual(len(cart.rows()), 0)", "always_true"),
    ("self.assertIsNotNone([])", "always_true"),
    ("bell = mock.Mock()\n    cart.ring(bell)\n    bell.assert_called_once", "always_true"),
    ("bell = mock.Mock()\n    cart.ring(bell)\n    assert bell.called_once_with(1)", "always_true"),
    ("price(-1)\n    pytest.raises(ValueError)", "always_true"),
    ("price(1)\n    with pytest.raises(ValueError):\n        raise ValueError('x')", "always_true"),
    ("pytest.skip('later')\n    assert price(2) == 4", "skipped"),
    ("pytest.xfail('later')\n    assert price(2) == 4", "skipped"),
    ("self.skipTest('later')\n    assert price(2) == 4", "skipped"),
    ("try:\n        n = price(2)\n    except Exception:\n        pytest.skip('broken')\n    assert n == 4", "skipped"),
    ("yield price(2)\n    assert price(2) == 4", "skipped"),
    ("assert price(2)\n    assert False, 'to do'", "always_fails"),
    ("assert price(2)\n    pytest.fail('to do')", "always_fails"),
    ("assert price(2)\n    raise NotImplementedError", "always_fails"),
    ("import time\n    time.sleep(2)\n    assert price(2) == 4", "sleep"),
    ("import requests\n    assert requests.get('https://example.com').ok", "network"),
    ("import requests\n    host = 'example.com'\n    assert requests.get(f'https://{host}/x').ok", "network"),
    ("monkeypatch.setattr(cart, 'total', lambda: 3)\n    assert cart.total() == 3", "mocked"),
    ("with mock.patch('shop.cart.total', return_value=3):\n        assert cart.total() == 3", "mocked"),
    ("cart.total = mock.Mock(return_value=3)\n    assert cart.total() == 3", "mocked"),
]
REFUSED_FILES = [
    (HEAD + "@pytest.mark.skip\ndef test_a():\n    assert price(2) == 4\n", "skipped"),
    (HEAD + "@pytest.mark.xfail(reason='later')\ndef test_a():\n    assert price(2) == 4\n", "skipped"),
    (HEAD + "@pytest.mark.skipif(True, reason='later')\ndef test_a():\n    assert price(2) == 4\n", "skipped"),
    (HEAD + "@pytest.mark.parametrize('n', [])\ndef test_a(n):\n    assert price(n) == 4\n", "skipped"),
    (HEAD + "pytestmark = [pytest.mark.skip]\n\n\ndef test_a():\n    assert price(2) == 4\n", "skipped"),
    (HEAD + "pytest.skip('later', allow_module_level=True)\n\n\ndef test_a():\n    assert price(2) == 4\n", "skipped"),
    ("import pytest\n\ntry:\n    from shop.cart import price\nexcept ImportError:\n    pytest.skip('no', allow_module_level=True)\n"
     "\n\ndef test_a():\n    assert price(2) == 4\n", "skipped"),
    ("import unittest\n\nfrom shop import cart\n\n\n@unittest.skip('later')\nclass CartTest(unittest.TestCase):\n"
     "    def test_a(self):\n        self.assertTrue(cart.rows())\n", "skipped"),
    ("from shop.cart import load\n\n\nasync def test_a():\n    assert await load() == 1\n", "not_awaited"),
    ("import unittest\n\nfrom shop.cart import load\n\n\nclass LoadTest(unittest.TestCase):\n"
     "    async def test_a(self):\n        self.assertEqual(await load(), 1)\n", "not_awaited"),
    ("from shop.cart import load\n\n\ndef test_a():\n    assert load()\n", "not_awaited"),
    ("import httpx\nimport pytest\nfrom shop.app import app\n\n\n@pytest.mark.anyio\nasync def test_a():\n"
     "    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:\n"
     "        assert client.get('/items')\n", "not_awaited"),
    ("import pytest\nfrom shop import cart\n\n\n@pytest.mark.anyio\nasync def test_a():\n    await cart.save(1)\n"
     "    cart.save(2)\n    assert cart.rows()\n", "not_awaited"),
    ("def price(n):\n    return n * 2\n\n\ndef test_a():\n    assert price(2) == 4\n", "no_subject"),
    ("import json\nimport pytest\n\n\ndef test_a(tmp_path):\n    assert json.loads('1') == 1\n", "no_subject"),
    ("import numpy\n\n\ndef test_a():\n    assert numpy.zeros(1)[0] == 0\n", "no_subject"),
    ("from shop import cart\n\n\ndef price(n):\n    return n * 2\n\n\ndef test_a():\n    assert price(2) == 4\n", "own_copy"),
    ("from shop import cart\n\n\nclass Cart:\n    rows = [1]\n\n\ndef test_a():\n    assert Cart().rows == [1]\n", "own_copy"),
    (HEAD + "def checks():\n    price(1)\n\n\ndef test_a():\n    checks()\n", "no_assertion"),
    (HEAD + "def test_a():\n    assert price(1) == 2\n\n\ndef test_a():\n    assert price(2) == 4\n", "duplicate_test"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), [*((body(text), code) for text, code in REFUSED_BODIES), *REFUSED_FILES])
def test_what_shows_nothing_is_refused(text: str, code: str) -> None:
    assert (code, "major") in check(text)


@pytest.mark.parametrize(
    "text", ["def test_a():\n    global X\n    X = 1\n    assert price(X)\n", "def test_a(" + "x=(" * 80]
)
def test_any_syntax_is_read(text: str) -> None:
    check(HEAD + text)


def test_what_is_not_known_is_only_told() -> None:
    text = "from shop.cart import load\n\n\nasync def test_a():\n    assert await load() == 1\n"
    assert check(text, Project()) == [("not_awaited", "minor")]
    auto = {"pyproject.toml": '[tool.pytest.ini_options]\nasyncio_mode = "auto"\n'}
    assert check(text, Project(files=PROJECT.files, settings=auto)) == []
    marked = "import pytest\n" + text.replace("async def", "@pytest.mark.asyncio\nasync def")
    assert check(marked, Project(files=PROJECT.files, packages=frozenset())) == [("not_awaited", "major")]
    maybe = HEAD + "@pytest.mark.skipif(cart.OLD, reason='x')\ndef test_a():\n    assert price(2) == 4\n"
    assert check(maybe) == [("skipped", "minor")]
