"""The page of APIs: what it reads from the code, and that nothing is without a reason."""

from __future__ import annotations

from protocol.generator import coverage
from protocol.generator.apis import APIS
from trionet.broker.run import _served_apis as served
from trionet.protocol.messages.registry import APIS as REGISTRY


def test_every_api_with_codecs_is_served_or_has_a_reason() -> None:
    served_modules = {REGISTRY[api.key][0] for api in served.APIS}

    assert set(APIS) - served_modules == set(coverage.NOT_SERVED)


def test_requests_are_seen_however_their_module_is_imported() -> None:
    source = """
from ...protocol.messages.fetch import FetchResponse
from ...protocol.messages.produce import ProduceRequest, ProduceResponse
from ...protocol.messages import heartbeat, describe_acls as acls, metadata
body = acls.DescribeAclsRequest()
known = heartbeat.HeartbeatResponse
answer = metadata.MetadataRequest
"""

    assert sorted(coverage.requests_in(source)) == ["describe_acls", "metadata", "produce"]


def test_gaps_are_what_a_docstring_calls_so() -> None:
    docstring = "Fetch, versions 0.\n\nMore. Gap: no ``x``; and\nno y.\n\nThe end."

    assert coverage.gaps(docstring) == "no `x`; and no y"
    assert coverage.gaps("Fetch, versions 0.") == ""


def test_a_row_has_versions_clients_and_what_is_left_out() -> None:
    page = coverage.coverage_page("4.2")

    assert (
        "| [Produce](../protocol.md#produce) | 0 | 0 to 13 | 0 to 13 | producer | no transactions |"
        in page
    )
    assert "| ListTransactions | 66 |  | 0 to 2 | admin | there are no transactions |" in page
    assert "| Vote | 52 |  |  |  | it runs between the controllers of a quorum |" in page
