""""""

from __future__ import annotations

import json

from trionet.spark.pipeline._storage import Intake, JobState
from trionet.spark.pipeline._watermark import BrokerTime
from trionet.spark.pipeline.incidents._causes import Cause, Worst
from trionet.spark.pipeline.incidents._culprits import Deviation
from trionet.spark.pipeline.incidents._incidents import Incident

MINUTE_US = 60_000_000
WORST = Worst(
    window=70,
    measure="error_share",
    phase=None,
    api_key=0,
    client_id="shop",
    listener=None,
    reason=None,
    value=0.5,
    expected=0.0,
    score=9.0,
)
CAUSE = Cause(
    first=69,
    last=70,
    last_whole=-1,
    deviation=Deviation("error_share", is_more=True, client_id="shop"),
    worst=WORST,
    scopes=((0, "shop", None, None),),
)
INCIDENT = Incident(id="i", first=69, last=70, anomalies=2, causes=(CAUSE,))


def test_a_minute_is_over_when_the_watermark_is_at_its_end() -> None:
    assert 0 == JobState().closed_before
    assert 7 == JobState(watermark_us=8 * MINUTE_US - 1).closed_before
    assert 8 == JobState(watermark_us=8 * MINUTE_US).closed_before


def test_all_that_is_remembered_is_in_its_text() -> None:
    intake = Intake(
        requests_read=7, connections_read=6, late=5, malformed=4, newer=3, ahead=2, old=1
    )
    remembered = JobState(
        batch=9,
        watermark_us=123,
        brokers={1: BrokerTime(123, 0), 2: BrokerTime(99, 0, silent=3)},
        open_batches={7: 70, 9: 71},
        open_records=4,
        minutes=((60, 70), (72, 72)),
        history=9,
        incidents=(INCIDENT,),
        intake=intake,
        ahead={2: 59},
        closed={70: 12, 71: 0},
    )

    assert remembered == JobState.from_json(remembered.to_json())
    assert JobState() == JobState.from_json(JobState().to_json())


def test_what_an_earlier_version_has_remembered_is_understood() -> None:
    text = JobState(batch=9, open_records=4).to_json()
    earlier = {**json.loads(text), "trailing": [[70, 8]]}
    for name in ("minutes", "history", "incidents", "brokers", "ahead"):
        del earlier[name]

    assert JobState(batch=9, open_records=4) == JobState.from_json(json.dumps(earlier))


def test_what_a_later_version_has_remembered_is_passed_over() -> None:
    """Someone who goes back to this version goes on where the other one was."""
    state = JobState(batch=9, open_records=4, incidents=(INCIDENT,), intake=Intake(late=2))
    later = json.loads(state.to_json())
    [incident] = later["incidents"]
    [cause] = incident["causes"]
    parts = (cause, cause["worst"], cause["deviation"])
    for each in (later, later["intake"], incident, *parts):
        each["learned"] = [1, 2]

    assert state == JobState.from_json(json.dumps(later))


def test_an_incident_of_an_earlier_version_goes_on() -> None:
    earlier = json.loads(JobState(incidents=(INCIDENT,)).to_json())
    [incident] = earlier["incidents"]
    [cause] = incident.pop("causes")
    incident["worst"] = cause["worst"]
    incident["scopes"] = [["error_share", cause["scopes"][0]]]

    assert (INCIDENT,) == JobState.from_json(json.dumps(earlier)).incidents


def test_late_records_are_among_those_that_were_read() -> None:
    assert (
        23
        == Intake(
            requests_read=7, connections_read=6, late=5, malformed=4, newer=3, ahead=2, old=1
        ).records
    )
    assert Intake(late=3, newer=1) == Intake(late=1) + Intake(late=2, newer=1)
