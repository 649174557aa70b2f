from __future__ import annotations

import math

from trionet.client.consumer.coordinator._membership import Heartbeat, PollInterval


def test_a_heartbeat_is_due_one_interval_after_the_last_was_sent() -> None:
    heartbeat = Heartbeat(3.0, 45.0)
    heartbeat.begin(100.0)

    assert 3.0 == heartbeat.due_in(100.0)
    heartbeat.sent(103.0)
    assert 1.0 == heartbeat.due_in(105.0)
    assert 0.0 == heartbeat.due_in(110.0)


def test_one_that_failed_is_due_after_its_wait() -> None:
    heartbeat = Heartbeat(3.0, 45.0)
    heartbeat.begin(100.0)
    heartbeat.failed(103.0, 0.1)

    assert math.isclose(0.1, heartbeat.due_in(103.0))


def test_a_session_lasts_from_the_last_response() -> None:
    heartbeat = Heartbeat(3.0, 45.0)
    heartbeat.begin(100.0)
    heartbeat.sent(103.0)

    assert 42.0 == heartbeat.session_left(103.0)
    heartbeat.heard(104.0)
    assert 44.0 == heartbeat.session_left(105.0)
    assert 0.0 == heartbeat.session_left(200.0)


def test_a_user_who_has_not_begun_is_not_late() -> None:
    assert math.inf == PollInterval(300.0).left(1000.0)


def test_a_user_is_late_after_the_interval() -> None:
    interval = PollInterval(300.0)
    interval.polled(100.0)

    assert 200.0 == interval.left(200.0)
    assert 0.0 == interval.left(500.0)


def test_a_user_who_waits_for_a_record_is_not_late() -> None:
    interval = PollInterval(300.0)
    interval.polled(100.0)
    interval.is_waiting = True

    assert (math.inf, 300.0) == (interval.left(500.0), interval.next_check_in(500.0))


def test_the_interval_begins_when_the_wait_is_over() -> None:
    interval = PollInterval(300.0)
    interval.polled(100.0)
    interval.is_waiting = True
    interval.stop_waiting(500.0)

    assert 290.0 == interval.left(510.0)
