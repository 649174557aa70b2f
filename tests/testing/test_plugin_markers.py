"""The plugin's fixtures and its marker, in a pytest of its own."""

from __future__ import annotations

import pytest

from support.processes import SAME_TRIONET

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "trionet.testing.plugin")


@pytest.fixture
def program(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A program with tests, in a folder of its own, with this plugin and no other."""
    monkeypatch.setenv("PYTHONPATH", SAME_TRIONET["PYTHONPATH"])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


MARKED = """
import pytest

pytestmark = pytest.mark.trionet(num_partitions=2)


def test_settings_of_the_module(trionet_broker):
    trionet_broker.seed("made", ["a"])
    assert trionet_broker.topics() == {"made": 2}


@pytest.mark.trionet(topics={"orders": 3, "audit": {"partitions": 1, "retention_ms": 1000}})
def test_topics_with_the_settings_of_the_module(trionet_broker):
    trionet_broker.seed("made", ["a"])
    assert trionet_broker.topics() == {"orders": 3, "audit": 1, "made": 2}


@pytest.mark.trionet(topics=["orders"], num_partitions=5)
def test_the_closest_marker_wins(trionet_broker):
    assert trionet_broker.topics() == {"orders": 5}


@pytest.mark.trionet(tls=True, sasl="SCRAM-SHA-256")
def test_security(trionet_broker):
    assert trionet_broker.security.protocol == "SASL_SSL"


@pytest.mark.trionet(num_partitions=4)
def test_a_marker_counts_for_the_variants_too(trionet_tls_broker, trionet_sasl_broker):
    assert trionet_tls_broker.security.protocol == "SSL"
    assert trionet_sasl_broker.security.protocol == "SASL_PLAINTEXT"
    for broker in (trionet_tls_broker, trionet_sasl_broker):
        broker.seed("made", ["a"])
        assert broker.topics() == {"made": 4}


def test_more_brokers(trionet_broker_factory):
    first = trionet_broker_factory(topics=["a"])
    second = trionet_broker_factory({"num.partitions": 7})
    assert first.bootstrap_servers != second.bootstrap_servers
    second.seed("made", ["a"])
    assert (first.topics(), second.topics()) == ({"a": 1}, {"made": 7})
"""


def test_a_marker_sets_up_the_broker(program: pytest.Pytester) -> None:
    program.makepyfile(MARKED)

    result = program.runpytest_subprocess(*PLUGIN, "-W", "error", "--strict-markers")

    result.assert_outcomes(passed=6)


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("num_partition=3", "*num.partition: unknown key; the closest match is num.partitions"),
        ("topic={'orders': 3}", "*topic: unknown key; the closest match is topics"),
        ("topics=3", "*invalid topics=3; expected a list of names, or a dict*"),
        ("topics='orders'", "*invalid topics='orders'; expected a list of names*"),
        ("topics={'orders': 'three'}", "*'three'}; expected a list of names*"),
        ("topics={'orders': 0}", "*partition count 0 is not allowed*"),
        ("topics={'orders': {'retention.mss': 1}}", "*retention.mss*"),
        ("sasl='GSSAPI'", "*invalid sasl='GSSAPI'; allowed: PLAIN, SCRAM-SHA-256*"),
        ("tls='no'", "*invalid tls='no'; allowed: True, False"),
        ("brokers='3'", "*brokers = '3' is not allowed; allowed: an integer from 1 to 100"),
        ("{'orders': 3}", "*takes only keyword arguments*, not {'orders': 3}"),
    ],
)
def test_a_marker_that_is_wrong_says_what_is(
    program: pytest.Pytester, marker: str, text: str
) -> None:
    program.makepyfile(f"""
        import pytest

        @pytest.mark.trionet({marker})
        def test_it(trionet_broker):
            pass
    """)

    result = program.runpytest_inprocess(*PLUGIN)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"E *UsageError: *::test_it: pytest.mark.trionet{text}"])
    result.stdout.no_fnmatch_line("*contextlib*")


SESSION = """
import pytest


@pytest.fixture(scope="session")
def trionet_session_settings():
    return {"topics": ["shared"]}


def test_one(trionet_session_broker):
    trionet_session_broker.seed("shared", ["a"])


def test_other(trionet_session_broker):
    assert trionet_session_broker.values("shared") == [b"a"]
"""


def test_one_broker_serves_a_session(program: pytest.Pytester) -> None:
    program.makepyfile(SESSION)

    result = program.runpytest_inprocess(*PLUGIN)

    result.assert_outcomes(passed=2)


FAILING = """
import pytest
import trionet
from trionet.protocol.messages.metadata import MetadataRequest


def ask(broker):
    with trionet.testing.raw_peer(broker.bootstrap_servers, "me") as peer:
        peer.call(MetadataRequest(topics=[]), 9)


@pytest.fixture
def mine():
    with trionet.testing.broker() as broker:
        yield broker


def test_given(trionet_broker):
    ask(trionet_broker)
    assert False


def test_made(mine):
    ask(mine)
    assert False


def test_from_the_factory(trionet_broker_factory):
    ask(trionet_broker_factory())
    assert False


def test_of_the_session(trionet_session_broker):
    ask(trionet_session_broker)
    assert False


def test_that_passes(trionet_broker):
    ask(trionet_broker)
"""


def test_a_failure_shows_what_the_broker_was_asked(program: pytest.Pytester) -> None:
    program.makepyfile(FAILING)

    result = program.runpytest_inprocess(*PLUGIN)

    result.assert_outcomes(failed=4, passed=1)
    result.stdout.fnmatch_lines(
        ["*- trionet broker log 127.0.0.1:* -*", "* Metadata v9 - from me on 127.0.0.1:*: ok"] * 4
    )


SHARED = """
import pytest
import trionet
from trionet.protocol.messages.metadata import MetadataRequest


def ask(broker, client="me"):
    with trionet.testing.raw_peer(broker.bootstrap_servers, client) as peer:
        return peer.call(MetadataRequest(topics=[]), 9)


@pytest.fixture(scope="module")
def slow(trionet_session_broker):
    return trionet_session_broker.faults.delay("Metadata", 0.001, times=None)


@pytest.fixture
def disk(trionet_session_broker):
    yield trionet_session_broker


def test_one(disk, slow):
    disk.faults.swallow("Metadata", times=None)
    disk.faults.stop_reading()
    disk.faults.fill_disk()


def test_other(trionet_session_broker, slow):
    ask(trionet_session_broker, "early")
    assert trionet_session_broker.faults.active == [slow]


def test_that_fails(trionet_session_broker):
    ask(trionet_session_broker, "late")
    assert False


def test_with_a_condition_that_fails(trionet_session_broker):
    trionet_session_broker.faults.close("Metadata", when=lambda request: 1 / 0)
    ask(trionet_session_broker)
"""


def test_faults_on_a_shared_broker_end_with_the_test_that_adds_them(
    program: pytest.Pytester,
) -> None:
    program.makepyfile(SHARED)

    result = program.runpytest_inprocess(*PLUGIN, "-p", "no:randomly")

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["E *ZeroDivisionError: division by zero"])
    # The failure of a test shows nothing of the tests before it.
    result.stdout.fnmatch_lines(["* Metadata v9 - from late on *"])
    result.stdout.no_fnmatch_line("* from early on *")


NODES = """
import pytest


@pytest.fixture(scope="session")
def trionet_session_settings():
    return {"brokers": 3, "topics": ["shared"]}


@pytest.fixture(scope="module")
def without_3(trionet_session_broker):
    trionet_session_broker.stop(3)


def test_that_stops_nodes(trionet_session_broker, without_3):
    trionet_session_broker.stop(1)
    trionet_session_broker.stop(2)
    assert trionet_session_broker.running_nodes == []


def test_that_stops_one_and_fails(trionet_session_broker):
    assert trionet_session_broker.running_nodes == [1, 2]
    trionet_session_broker.stop(2)
    assert False


def test_other(trionet_session_broker):
    assert trionet_session_broker.running_nodes == [1, 2]
    trionet_session_broker.seed("shared", ["a"])
"""


def test_nodes_that_a_test_stops_run_again_for_the_next(program: pytest.Pytester) -> None:
    program.makepyfile(NODES)

    result = program.runpytest_inprocess(*PLUGIN, "-p", "no:randomly")

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E *assert False"])


@pytest.mark.parametrize("argument", ["trionet_session_broker", "trionet_broker_factory", ""])
def test_a_marker_that_nothing_reads_is_an_error(program: pytest.Pytester, argument: str) -> None:
    program.makepyfile(f"""
        import pytest

        @pytest.mark.trionet(topics=["orders"])
        def test_it({argument}):
            pass
    """)

    result = program.runpytest_inprocess(*PLUGIN)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E *UsageError: *::test_it: pytest.mark.trionet has no effect*"])


def test_a_test_may_ask_for_a_marked_broker_later(program: pytest.Pytester) -> None:
    program.makepyfile("""
        import pytest

        @pytest.mark.trionet(topics=["orders"])
        def test_it(request):
            assert request.getfixturevalue("trionet_broker").topics() == {"orders": 1}
    """)

    result = program.runpytest_inprocess(*PLUGIN)

    result.assert_outcomes(passed=1)


def test_a_broker_that_a_test_opens_by_itself_is_not_asked_for_a_log(
    program: pytest.Pytester,
) -> None:
    program.makepyfile("def test_it():\n    assert False\n")

    result = program.runpytest_inprocess(*PLUGIN)

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*trionet broker log*")


def test_the_marker_explains_itself(program: pytest.Pytester) -> None:
    result = program.runpytest_inprocess(*PLUGIN, "--markers")

    result.stdout.fnmatch_lines(["@pytest.mark.trionet(topics={*}, tls=False, sasl=None, *"])


def test_every_fixture_explains_itself(program: pytest.Pytester) -> None:
    result = program.runpytest_inprocess(*PLUGIN, "--fixtures", "-v")

    for name in ("broker", "tls_broker", "sasl_broker", "broker_factory", "session_broker"):
        result.stdout.fnmatch_lines([f"trionet_{name}*"])
    result.stdout.no_fnmatch_line("*no docstring available*")


MANY = """
import gc
import os
import threading
import weakref

import pytest


def held():
    open_files = {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if
                  os.path.exists(f"/proc/self/fd/{n}")}
    names = {each.name for each in threading.enumerate()}
    threads = {name for name in names if not name.startswith("Trio thread")}
    return open_files, threads


BEFORE = held()
BROKERS = []


@pytest.mark.trionet(topics=["t"])
@pytest.mark.parametrize("number", range(50))
def test_it(trionet_broker, number):
    trionet_broker.seed("t", ["a"])
    BROKERS.append(weakref.ref(trionet_broker))


def test_nothing_is_left():
    gc.collect()  # what only garbage holds is no leak
    after = held()
    assert len(BROKERS) == 50
    assert not [each for each in BROKERS if each() is not None]
    assert after[1] == BEFORE[1]
    assert not [each for each in after[0] - BEFORE[0] if each.startswith(("socket:", "/memfd"))]
    assert len(os.listdir("/proc/self/fd")) < 40
"""


@pytest.mark.slow
def test_fifty_fixtures_leave_nothing(program: pytest.Pytester) -> None:
    program.makepyfile(MANY)

    result = program.runpytest_subprocess(*PLUGIN, "-W", "error", "-q")

    result.assert_outcomes(passed=51)
