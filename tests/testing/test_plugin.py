"""The fixture, in a pytest of its own: as it is in a program that has trionet installed."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from support.processes import SAME_TRIONET

pytest_plugins = ["pytester"]


# A Kafka client of five lines: nothing of ours is needed to use the fixture.
TESTS = r"""
import asyncio
import socket

import pytest
import trio

REQUEST = b"\0\0\0\x0b" + b"\0\x12\0\0\0\0\0\1\0\1t"  # ApiVersions version 0 of client "t"
addresses = []


@pytest.fixture(autouse=True)
def remember(trionet_broker):
    addresses.append((trionet_broker.bootstrap_servers, trionet_broker.cluster_id))
    yield
    host, port = addresses[-1][0].split(":")
    socket.create_connection((host, int(port))).close()


def address(broker):
    host, port = broker.bootstrap_servers.split(":")
    return host, int(port)


def test_sync(trionet_broker):
    with socket.create_connection(address(trionet_broker)) as sock:
        sock.sendall(REQUEST)
        assert sock.recv(10, socket.MSG_WAITALL)[4:] == b"\0\0\0\1\0\0"


def test_asyncio(trionet_broker):
    async def ask():
        reader, writer = await asyncio.open_connection(*address(trionet_broker))
        writer.write(REQUEST)
        answer = await reader.readexactly(10)
        writer.close()
        await writer.wait_closed()
        return answer

    assert asyncio.run(ask())[4:] == b"\0\0\0\1\0\0"


@pytest.mark.trio
async def test_trio(trionet_broker):
    async with await trio.open_tcp_stream(*address(trionet_broker)) as stream:
        await stream.send_all(REQUEST)
        assert (await stream.receive_some(10))[4:] == b"\0\0\0\1\0\0"


def test_each_test_has_a_fresh_one(trionet_broker):
    assert len(set(addresses)) == len(addresses) == 4
"""


@pytest.fixture
def program(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A program with tests, in a folder of its own."""
    monkeypatch.setenv("PYTHONPATH", SAME_TRIONET["PYTHONPATH"])
    pytester.makepyfile(TESTS)
    return pytester


def test_sync_asyncio_and_trio_tests_each_get_a_fresh_broker(
    program: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = ["-p", "trionet.testing.plugin", "-p", "pytest_trio.plugin"]

    result = program.runpytest_subprocess(*plugins, "-W", "error")

    result.assert_outcomes(passed=4)


def test_the_fixture_explains_itself(
    program: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    result = program.runpytest_subprocess("-p", "trionet.testing.plugin", "--fixtures", "-q")

    result.stdout.fnmatch_lines(["*trionet_broker*", "*A new in-memory broker for this test*"])


def test_an_installed_trionet_brings_the_fixture_along(program: pytest.Pytester) -> None:
    if not [entry for entry in entry_points(group="pytest11") if entry.name == "trionet"]:
        pytest.skip("trionet is not installed here, it is only on the path")

    result = program.runpytest_subprocess("-k", "sync and not asyncio")

    result.assert_outcomes(passed=1, deselected=3)


# Tests of a project that has nothing to do with Kafka. Nothing of trionet's is imported for them.
FOREIGN = {
    "doctested.py": """
def three():
    \"\"\"Return 3.

    >>> three()
    3
    \"\"\"
    return 3
""",
    "test_sums.txt": """
>>> 1 + 1
2
""",
    "test_unit.py": """
import unittest


class Sums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(2, 1 + 1)

    @unittest.skip("not today")
    def test_difference(self):
        pass


class Awaited(unittest.IsolatedAsyncioTestCase):
    async def test_sum(self):
        self.assertEqual(2, 1 + 1)
""",
    "test_calls.py": """
import functools
import sys

import pytest


class Tests:
    @pytest.mark.parametrize("number", [1, 2])
    def test_number(self, number):
        assert number

    @staticmethod
    def test_static():
        pass


test_partial = functools.partial(lambda number: None, 1)


def test_nothing_is_imported():
    assert "trio" not in sys.modules
    assert "trionet.testing._threaded" not in sys.modules
""",
    "sums.yaml": "1 + 1: 2",
    "conftest.py": """
import pytest


class Sum(pytest.Item):
    funcargs = None  # as it likes

    def runtest(self):
        left, right = self.name.split(":")
        assert eval(left) == int(right)


class Sums(pytest.File):
    def collect(self):
        for line in self.path.read_text().splitlines():
            yield Sum.from_parent(self, name=line)


def pytest_collect_file(file_path, parent):
    return Sums.from_parent(parent, path=file_path) if file_path.suffix == ".yaml" else None
""",
}


@pytest.fixture
def foreign(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A program whose tests do not use trionet, which is installed."""
    monkeypatch.setenv("PYTHONPATH", SAME_TRIONET["PYTHONPATH"])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, text in FOREIGN.items():
        pytester.path.joinpath(name).write_text(text)
    return pytester


def test_tests_of_every_kind_that_do_not_name_it_are_left_alone(foreign: pytest.Pytester) -> None:
    options = ["--doctest-modules", "-p", "pytester", "-W", "error"]

    result = foreign.runpytest_subprocess("-p", "trionet.testing.plugin", *options)

    result.assert_outcomes(passed=10, skipped=1)


def test_failures_of_every_kind_are_reported_as_they_are(foreign: pytest.Pytester) -> None:
    foreign.path.joinpath("sums.yaml").write_text("1 + 1: 3")
    foreign.path.joinpath("test_sums.txt").write_text(">>> 1 + 1\n3\n")

    result = foreign.runpytest_subprocess(
        "-p", "trionet.testing.plugin", "sums.yaml", "test_sums.txt"
    )

    result.assert_outcomes(failed=2)
    result.stdout.no_fnmatch_line("*broker log*")
