"""The pytest plugin: broker fixtures, the ``trionet`` marker, and broker logs for failed tests.

pytest loads the plugin in every run where trionet is installed, so it imports only pytest until a
test uses a broker.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._threaded import ThreadedBroker

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

_LOG_SECTION = "trionet broker log"
# The brokers that a test got, from whichever fixture.
_brokers_of = pytest.StashKey[list["ThreadedBroker"]]()
# When a test started, in ms since the epoch.
_began_at = pytest.StashKey[int]()
# Whether a fixture has read the markers of a test.
_was_read = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the ``trionet`` marker."""
    config.addinivalue_line(
        "markers",
        'trionet(topics={"orders": 3}, tls=False, sasl=None, **settings): arguments to'
        " trionet.testing.broker for the trionet_broker fixture and its variants, such as"
        " num_partitions=3; the closest marker wins",
    )


def _arguments(node: pytest.Item, **defaults: object) -> dict[str, Any]:
    """Merge the arguments of a test's markers; closer markers take precedence."""
    arguments = dict(defaults)
    node.stash[_was_read] = True
    for marker in reversed(list(node.iter_markers("trionet"))):
        if marker.args:
            raise pytest.UsageError(
                f"{node.nodeid}: pytest.mark.trionet takes only keyword arguments, such as"
                f' @pytest.mark.trionet(topics={{"orders": 3}}, num_partitions=3),'
                f" not {', '.join(map(repr, marker.args))}"
            )
        arguments.update(marker.kwargs)
    return arguments


def _run_broker(
    request: pytest.FixtureRequest, **defaults: object
) -> Generator[ThreadedBroker, None, None]:
    from ..errors import ApiError, ConfigError
    from ._threaded import broker

    node: pytest.Item = request.node
    arguments = _arguments(node, **defaults)
    with ExitStack() as stack:
        try:
            running = stack.enter_context(broker(**arguments))
        except (ApiError, ConfigError, TypeError) as error:
            if arguments == defaults:
                raise
            # No cause, whose frames say nothing about the marker.
            raise pytest.UsageError(f"{node.nodeid}: pytest.mark.trionet: {error}") from None
        with _logged_with(node, running):
            yield running


@contextmanager
def _logged_with(node: pytest.Item, running: ThreadedBroker) -> Iterator[None]:
    """Add the broker's log to the report if the test fails in the block."""
    brokers = node.stash.setdefault(_brokers_of, [])
    brokers.append(running)
    try:
        yield
    finally:
        brokers.remove(running)


@pytest.fixture
def trionet_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A new in-memory broker for this test; clients connect to ``.bootstrap_servers``."""
    yield from _run_broker(request)


@pytest.fixture
def trionet_tls_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """Like ``trionet_broker``, but with TLS; ``.client_config(...)`` returns client settings."""
    yield from _run_broker(request, tls=True)


@pytest.fixture
def trionet_sasl_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """Like ``trionet_broker``, but with SASL; ``.client_config(...)`` returns client settings."""
    yield from _run_broker(request, sasl="PLAIN")


@pytest.fixture
def trionet_broker_factory(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., ThreadedBroker]]:
    """A function that starts another broker; its arguments are those of ``trionet.testing.broker``.

    The brokers stop at the end of the test. The ``trionet`` marker does not apply to them.
    """
    from ._threaded import broker

    with ExitStack() as stack:

        def start(*settings: Any, **arguments: Any) -> ThreadedBroker:
            running = stack.enter_context(broker(*settings, **arguments))
            stack.enter_context(_logged_with(request.node, running))
            return running

        yield start


@pytest.fixture(scope="session")
def trionet_session_settings() -> dict[str, Any]:
    """The arguments of ``trionet_session_broker``; override this fixture in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def trionet_session_broker(
    trionet_session_settings: dict[str, Any],
) -> Iterator[ThreadedBroker]:
    """One broker shared by all tests of the session that use it."""
    from ._threaded import broker

    with broker(**trionet_session_settings) as running:
        yield running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Record when a test starts, and reject a marker that no fixture used."""
    # As long as it is not imported there are no brokers, and so no older requests to leave out.
    clock = sys.modules.get(f"{__package__}._system_clock")
    if clock is not None:
        item.stash[_began_at] = clock.now_ms()
    yield
    is_marked = any(marker.name == "trionet" for marker in item.own_markers)
    if is_marked and not item.stash.get(_was_read, False) and not _may_ask_later(item):
        raise pytest.UsageError(
            f"{item.nodeid}: pytest.mark.trionet has no effect here: it applies to the fixtures"
            " trionet_broker, trionet_tls_broker and trionet_sasl_broker, and this test uses none"
            " of them; for other fixtures, use trionet_session_settings or the arguments of"
            " trionet_broker_factory"
        )


def _may_ask_later(item: pytest.Item) -> bool:
    """Return whether a test may request a fixture while it runs."""
    if not isinstance(item, pytest.Function):
        return True  # as doctests may, with `getfixture`
    return "request" in inspect.signature(item.obj).parameters


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Undo what a test did to brokers shared with other tests: its faults, and stopped nodes."""
    own = item.stash.get(_brokers_of, [])
    with ExitStack() as stack:
        for running in _brokers(item):
            if running not in own:
                stack.enter_context(running.faults.block())
                stack.callback(_start_nodes, running, running.running_nodes)
        yield


def _start_nodes(running: ThreadedBroker, nodes: list[int]) -> None:
    """Start those of the nodes that are stopped; their partitions stay where they are led now."""
    for node in set(nodes) - set(running.running_nodes):
        running.start(node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the requests and logs of a test's brokers to the report if the test failed."""
    report = yield
    if report.failed:
        for running in _brokers(item):
            log = running.log(since_ms=item.stash.get(_began_at, 0)) or "no requests"
            report.sections.append((f"{_LOG_SECTION} {running.bootstrap_servers}", log))
    return report


def _brokers(item: pytest.Item) -> list[ThreadedBroker]:
    """Return the brokers that a test got from the plugin's fixtures, or from derived fixtures."""
    found: list[ThreadedBroker] = [*item.stash.get(_brokers_of, [])]
    # Other kinds of items have no `funcargs`, or their own.
    values = item.funcargs.values() if isinstance(item, pytest.Function) else ()
    if any(type(value).__name__ == "ThreadedBroker" for value in values):
        from ._threaded import ThreadedBroker

        found += [each for each in values if isinstance(each, ThreadedBroker)]
    return list(dict.fromkeys(found))
