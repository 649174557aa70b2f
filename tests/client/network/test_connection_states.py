"""The way of a connection, and when the next attempt may begin."""

from __future__ import annotations

import math
import random

import pytest

from trionet.client._backoff import ExponentialBackoff
from trionet.client._network_settings import ConnectionTimes
from trionet.client.network._connection_states import (
    PATIENCE_SECONDS,
    ClusterConnectionStates,
    ConnectionState,
)
from trionet.errors import AuthenticationError, LocalProtocolError
from trionet.net.wire._connecting import Address

A, B, C = 1, 2, 3
HOST = "broker.example"
RECONNECT = ExponentialBackoff(0.010, 1.0)
SETUP = ExponentialBackoff(10.0, 30.0)
ONE: Address = ("10.0.0.1", 9092)
TWO: Address = ("10.0.0.2", 9092)


@pytest.fixture
def states() -> ClusterConnectionStates:
    return ClusterConnectionStates(
        ConnectionTimes(reconnect=RECONNECT, setup=SETUP), random.Random(0)
    )


def become_ready(states: ClusterConnectionStates, node_id: int, now: float = 0.0) -> None:
    states.connecting(node_id, HOST, now)
    states.checking_api_versions(node_id)
    states.ready(node_id)


def test_way_of_a_connection(states: ClusterConnectionStates) -> None:
    """C1."""
    assert states.of(A).can_connect(0)
    assert 0 == states.of(A).connection_delay(0)
    assert states.of(A).state is None

    states.connecting(A, HOST, 0)

    assert states.of(A).state is ConnectionState.CONNECTING
    assert not states.of(A).can_connect(0)
    assert not states.of(A).is_ready(0)
    assert 8.0 <= states.of(A).connection_delay(0) <= 12.0  # what the setup may take
    assert states.of(A).connection_delay(5) == pytest.approx(states.of(A).connection_delay(0) - 5)

    states.checking_api_versions(A)
    states.ready(A)

    assert states.of(A).is_ready(0)
    assert not states.of(A).can_connect(0)
    assert not states.of(A).is_disconnected
    assert math.inf == states.of(A).connection_delay(0)

    states.disconnected(A, 1.0)

    assert states.of(A).is_disconnected
    assert states.of(A).connection_delay(1.0) > 0
    assert not states.of(A).can_connect(1.0)
    assert not states.of(A).is_ready(1.0)
    assert states.of(A).can_connect(1.012)
    assert 0 == states.of(A).connection_delay(1.012)


def test_each_node_waits_for_itself(states: ClusterConnectionStates) -> None:
    """C2."""
    become_ready(states, A)
    states.connecting(B, HOST, 0)
    assert states.of(A).is_ready(0)
    states.ready(B)
    states.disconnected(A, 1.0)
    assert states.of(B).is_ready(1.0)
    states.disconnected(B, 1.005)

    assert not states.of(B).is_ready(1.006)
    assert states.of(A).can_connect(1.012)
    assert not states.of(B).can_connect(1.012)
    assert states.of(B).connection_delay(1.012) > 0


def test_failed_authentication_is_kept_until_one_succeeds(states: ClusterConnectionStates) -> None:
    """C3."""
    error = AuthenticationError("no")
    states.connecting(A, HOST, 0)
    states.checking_api_versions(A)

    states.authentication_failed(A, error, 1.0)

    assert ConnectionState.AUTHENTICATION_FAILED is states.of(A).state
    assert error is states.of(A).authentication_error
    assert states.of(A).is_disconnected
    assert states.of(A).connection_delay(1.0) > 0
    assert not states.of(A).can_connect(1.0)
    assert states.of(A).can_connect(1.1)

    states.connecting(A, HOST, 1.1)
    states.ready(A)

    assert states.of(A).authentication_error is None


def test_removed_node_is_unknown(states: ClusterConnectionStates) -> None:
    """C4."""
    become_ready(states, A)
    states.disconnected(A, 0)
    states.remove(A)

    assert states.of(A).can_connect(0)
    assert 0 == states.of(A).connection_delay(0)


def test_removed_node_does_not_connect_any_more(states: ClusterConnectionStates) -> None:
    states.connecting(A, HOST, 0)
    states.remove(A)

    assert [] == states.timed_out_connects(100)


def test_wait_never_goes_beyond_its_limit(states: ClusterConnectionStates) -> None:
    """C5."""
    now = 0.0
    for _ in range(100):
        states.connecting(A, HOST, now)
        states.disconnected(A, now)
        wait = states.of(A).connection_delay(now)

        assert wait <= 1.0 + 1e-9
        now += wait + 1


@pytest.mark.parametrize("asks_versions", [False, True])
def test_wait_doubles_with_each_failure_in_a_row(
    states: ClusterConnectionStates, asks_versions: bool
) -> None:
    """C6: only READY ends the row (KAFKA-13879)."""
    for failure in range(10):
        states.connecting(A, HOST, failure)
        if asks_versions:
            states.checking_api_versions(A)
        states.disconnected(A, failure)

        expected = min(0.010 * 2**failure, 1.0)
        assert expected * 0.8 <= states.of(A).connection_delay(failure) <= expected * 1.2

    become_ready(states, A, 100.0)
    states.disconnected(A, 100.0)

    assert 0.008 <= states.of(A).connection_delay(100.0) <= 0.012


def test_throttled_node_is_not_ready(states: ClusterConnectionStates) -> None:
    """C7."""
    become_ready(states, A)

    states.throttle(A, 0.100)

    assert not states.of(A).is_ready(0)
    assert 0.100 == states.of(A).poll_delay(0)
    assert 0.050 == states.of(A).poll_delay(0.050)
    assert states.of(A).is_ready(0.100)
    assert math.inf == states.of(A).connection_delay(0.100) == states.of(A).poll_delay(0.100)


def test_end_of_throttling_never_moves_back(states: ClusterConnectionStates) -> None:
    become_ready(states, A)

    states.throttle(A, 0.200)
    states.throttle(A, 0.100)

    assert 0.200 == states.of(A).poll_delay(0)


def test_new_connection_keeps_the_silence_that_the_broker_asked_for(
    states: ClusterConnectionStates,
) -> None:
    become_ready(states, A)
    states.throttle(A, 100.0)
    states.disconnected(A, 1.0)
    become_ready(states, A, 2.0)

    assert not states.of(A).is_ready(99.0)
    assert states.of(A).is_ready(100.0)


def test_addresses_are_kept_for_the_next_attempt(states: ClusterConnectionStates) -> None:
    """C8."""
    addresses = states.connecting(A, HOST, 0)
    addresses.found([ONE, TWO])
    assert ONE == addresses.take()
    states.disconnected(A, 0)

    assert addresses is states.connecting(A, HOST, 1)
    assert TWO == addresses.take()


def test_addresses_are_looked_up_after_an_established_connection(
    states: ClusterConnectionStates,
) -> None:
    """C9, N28."""
    addresses = states.connecting(A, HOST, 0)
    addresses.found([ONE, TWO])
    addresses.take()
    states.ready(A)
    states.disconnected(A, 0)

    assert states.connecting(A, HOST, 1).needs_lookup


def test_new_host_name_has_addresses_of_its_own(states: ClusterConnectionStates) -> None:
    """C8, KAFKA-7890."""
    addresses = states.connecting(A, HOST, 0)
    addresses.found([ONE, TWO])
    states.disconnected(A, 0)

    assert states.connecting(A, "moved.example", 1).needs_lookup


def test_preparing(states: ClusterConnectionStates) -> None:
    """C10."""
    assert not states.of(A).is_preparing
    states.connecting(A, HOST, 0)
    assert states.of(A).is_preparing
    states.checking_api_versions(A)
    assert states.of(A).is_preparing
    states.disconnected(A, 0)
    assert not states.of(A).is_preparing


def setup_seconds(states: ClusterConnectionStates, now: float) -> float:
    states.connecting(A, HOST, now)
    return states.of(A).connection_delay(now)


def test_setup_may_take_twice_as_long_after_each_that_failed(
    states: ClusterConnectionStates,
) -> None:
    """C11."""
    for failure in range(6):
        expected = min(10.0 * 2**failure, 30.0)

        assert expected * 0.8 <= setup_seconds(states, failure * 100) <= min(expected * 1.2, 30.0)
        states.disconnected(A, failure * 100)

    become_ready(states, A, 1000.0)
    states.disconnected(A, 1000.0)

    assert 8.0 <= setup_seconds(states, 2000.0) <= 12.0
    states.checking_api_versions(A)
    states.disconnected(A, 2000.0)
    assert 8.0 <= setup_seconds(states, 3000.0) <= 12.0


def test_late_connects(states: ClusterConnectionStates) -> None:
    """C12."""
    states.connecting(A, HOST, 0)
    states.connecting(B, HOST, 0)
    states.connecting(C, HOST, 5)

    assert [] == states.timed_out_connects(7.9)
    assert [A, B] == states.timed_out_connects(12.1)
    assert 7.9 < states.next_connect_timeout() <= 12.0
    states.disconnected(A, 12.1)
    states.disconnected(B, 12.1)
    assert [C] == states.timed_out_connects(17.1)
    states.disconnected(C, 17.1)
    assert [] == states.timed_out_connects(100)
    assert math.inf == states.next_connect_timeout()


def test_slow_connections_are_taken_once_an_attempt(states: ClusterConnectionStates) -> None:
    states.connecting(A, HOST, 0)
    states.connecting(B, HOST, 1)

    assert [] == states.take_newly_slow(PATIENCE_SECONDS - 0.1)
    assert [A] == states.take_newly_slow(PATIENCE_SECONDS)
    assert states.of(A).is_slow
    assert not states.of(B).is_slow
    assert PATIENCE_SECONDS + 1 == states.next_slow_at
    assert [B] == states.take_newly_slow(PATIENCE_SECONDS + 5)
    assert math.inf == states.next_slow_at
    states.disconnected(A, 10)
    assert not states.of(A).is_slow
    states.connecting(A, HOST, 11)
    assert [A] == states.take_newly_slow(11 + PATIENCE_SECONDS)


def test_asking_for_versions_may_be_slow_and_a_ready_connection_is_not(
    states: ClusterConnectionStates,
) -> None:
    states.connecting(A, HOST, 0)
    states.checking_api_versions(A)
    become_ready(states, B, 0)

    assert [A] == states.take_newly_slow(PATIENCE_SECONDS)
    states.ready(A)
    assert not states.of(A).is_slow


def test_node_that_was_never_tried_cannot_become_ready(states: ClusterConnectionStates) -> None:
    with pytest.raises(LocalProtocolError, match="no connection to node 1 has ever been started"):
        states.ready(A)


def test_nodes_that_left_the_cluster_are_forgotten_when_there_is_no_connection(
    states: ClusterConnectionStates,
) -> None:
    """The states of a cluster that replaces its nodes again and again would grow for ever."""
    for node_id in (A, B, C):
        states.connecting(node_id, "h", 0.0)
    states.disconnected(A, 1.0)
    states.disconnected(C, 1.0)

    states.forget_departed({A, B}, {7})
    assert [None, ConnectionState.CONNECTING] == [states.of(A).state, states.of(B).state]
    assert ConnectionState.DISCONNECTED is states.of(C).state, "it was never a part of the cluster"
    states.disconnected(B, 2.0)
    states.forget_departed({7}, {7})
    assert states.of(B).state is None


def test_a_node_that_comes_back_in_time_is_not_forgotten(states: ClusterConnectionStates) -> None:
    states.connecting(A, "h", 0.0)
    states.forget_departed({A}, {B})
    states.forget_departed({B}, {A, B})
    states.disconnected(A, 1.0)
    states.forget_departed({A, B}, {A, B})

    assert ConnectionState.DISCONNECTED is states.of(A).state
