"""A report as JSON."""

from __future__ import annotations

import json

from spark.pipeline.report.samples import HOSTILE, report_of, sample
from trionet.spark.pipeline.report.text._json import document


def test_a_document_is_one_line_of_everything() -> None:
    text = document(report_of(sample()))

    assert text.isascii()
    assert text.isprintable()
    said = json.loads(text)
    assert 1 == said["version"]
    assert "2026-03-01T12:00:00Z" == said["start"]
    assert (1025, 5) == (said["requests"], said["errors"])
    assert ["NOT_LEADER_OR_FOLLOWER", "NONE"] == [each["error"] for each in said["errors_by_code"]]
    assert ["Produce", "Fetch"] == [each["api"] for each in said["apis"]]
    assert HOSTILE == said["talkers"][1]["client_id"]
    assert 12 == said["intake"]["late"]
    assert "2026-03-01T12:08:00Z" == said["anomalies"][0]["window"]
    assert 10 == len(said["timeline"]["starts"]) == len(said["timeline"]["requests"]["Fetch"])
