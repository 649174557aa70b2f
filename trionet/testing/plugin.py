"""The pytest plugin: brokers as fixtures, the marker ``trionet``, and their log with a failure.

pytest loads this in every run of everybody who has trionet installed. So it imports nothing but
pytest until a test asks for a broker.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .brokers._threaded import ThreadedBroker

_LOG_SECTION = "trionet broker log"
# The brokers that a test was given, whichever way.
_brokers_of = pytest.StashKey[list["ThreadedBroker"]]()
# When a test began, in ms since the epoch.
_began_at = pytest.StashKey[int]()
# Whether a fixture has read the markers of a test.
_was_read = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        'trionet(topics={"orders": 3}, tls=False, sasl=None, **settings): what the fixture'
        " trionet_broker and its variants give to trionet.testing.broker, such as"
        " num_partitions=3; the closest marker wins",
    )


def _arguments(node: pytest.Item, **defaults: object) -> dict[str, Any]:
    """What the markers of a test say of its broker; those closer to it win."""
    given = dict(defaults)
    node.stash[_was_read] = True
    for marker in reversed(list(node.iter_markers("trionet"))):
        if marker.args:
            raise pytest.UsageError(
                f"{node.nodeid}: pytest.mark.trionet takes keywords only, as in"
                f' @pytest.mark.trionet(topics={{"orders": 3}}, num_partitions=3),'
                f" and not {', '.join(map(repr, marker.args))}"
            )
        given.update(marker.kwargs)
    return given


def _run_broker(
    request: pytest.FixtureRequest, **defaults: object
) -> Generator[ThreadedBroker, None, None]:
    from ..errors import ApiError, ConfigError
    from .brokers._threaded import broker

    node: pytest.Item = request.node
    arguments = _arguments(node, **defaults)
    with ExitStack() as stack:
        try:
            running = stack.enter_context(broker(**arguments))
        except (ApiError, ConfigError, TypeError) as error:
            if arguments == defaults:
                raise
            raise pytest.UsageError(f"{node.nodeid}: pytest.mark.trionet: {error}") from error
        with _logged_with(node, running):
            yield running


@contextmanager
def _logged_with(node: pytest.Item, running: ThreadedBroker) -> Iterator[None]:
    """Show the broker's log if the test fails in the block; its item lives much longer."""
    brokers = node.stash.setdefault(_brokers_of, [])
    brokers.append(running)
    try:
        yield
    finally:
        brokers.remove(running)


@pytest.fixture
def trionet_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A running broker, fresh for this test, in memory, at ``.bootstrap_servers``."""
    yield from _run_broker(request)


@pytest.fixture
def trionet_tls_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """As ``trionet_broker``, with TLS; clients need what ``.client_config(...)`` gives."""
    yield from _run_broker(request, tls=True)


@pytest.fixture
def trionet_sasl_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """As ``trionet_broker``, with SASL; clients need what ``.client_config(...)`` gives."""
    yield from _run_broker(request, sasl="PLAIN")


@pytest.fixture
def trionet_broker_factory(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., ThreadedBroker]]:
    """Starts more brokers: call it with the arguments of ``trionet.testing.broker``.

    They end with the test. The marker ``trionet`` does not count for them.
    """
    from .brokers._threaded import broker

    with ExitStack() as stack:

        def start(*settings: Any, **arguments: Any) -> ThreadedBroker:
            running = stack.enter_context(broker(*settings, **arguments))
            stack.enter_context(_logged_with(request.node, running))
            return running

        yield start


@pytest.fixture(scope="session")
def trionet_session_settings() -> dict[str, Any]:
    """The arguments of the broker of ``trionet_session_broker``; override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def trionet_session_broker(
    trionet_session_settings: dict[str, Any],
) -> Iterator[ThreadedBroker]:
    """One broker for the whole session, which every test that asks for it shares."""
    from .brokers._threaded import broker

    with broker(**trionet_session_settings) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Note when a test begins, and refuse a marker of its own that nothing has read."""
    item.stash[_began_at] = time.time_ns() // 1_000_000
    yield
    is_marked = any(marker.name == "trionet" for marker in item.own_markers)
    # Who takes `request` may ask for a fixture later.
    may_ask = "request" in inspect.signature(getattr(item, "obj", int)).parameters
    if is_marked and not may_ask and not item.stash.get(_was_read, False):
        raise pytest.UsageError(
            f"{item.nodeid}: pytest.mark.trionet has no effect: it counts for the fixtures"
            " trionet_broker, trionet_tls_broker and trionet_sasl_broker, and this test uses none"
            " of them; trionet_session_settings and the arguments of trionet_broker_factory are"
            " for the others"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """End the faults that a test adds to brokers that others use, too, with the test."""
    own = item.stash.get(_brokers_of, [])
    with ExitStack() as stack:
        for running in _brokers(item):
            if running not in own:
                stack.enter_context(running.faults.block())
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that has failed what its brokers were asked and what they answered."""
    report = yield
    if report.failed:
        for running in _brokers(item):
            log = running.log(since_ms=item.stash[_began_at]) or "nothing was asked of it"
            report.sections.append((f"{_LOG_SECTION} {running.bootstrap_servers}", log))
    return report


def _brokers(item: pytest.Item) -> list[ThreadedBroker]:
    """The brokers of a test: of its fixtures, and of fixtures that somebody has made of them."""
    found: list[ThreadedBroker] = [*item.stash.get(_brokers_of, [])]
    values = getattr(item, "funcargs", {}).values()
    if any(type(value).__name__ == "ThreadedBroker" for value in values):
        from .brokers._threaded import ThreadedBroker

        found += [each for each in values if isinstance(each, ThreadedBroker)]
    return list(dict.fromkeys(found))
