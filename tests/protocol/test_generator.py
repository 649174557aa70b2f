"""The generator: what is committed is what it writes, and the page of APIs says what is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from kio.schema.index import api_key_map

from protocol.generator import cli, coverage
from protocol.generator.apis import APIS, DATA, LEFT_OUT
from protocol.generator.classes import span
from protocol.generator.lines import wrap
from protocol.generator.meanings import MEANINGS
from protocol.samples import api_of
from trionet.broker.run import _served_apis as served
from trionet.protocol.messages.fetch import FetchPartition, NodeEndpoint
from trionet.protocol.messages.registry import APIS as REGISTRY
from trionet.protocol.unrolling._source import WIDTH


def test_every_api_of_kio_is_generated_or_left_out_for_a_reason() -> None:
    assert sorted([*APIS, *LEFT_OUT]) == sorted(api_key_map.values())
    assert all(LEFT_OUT.values())


def test_committed_files_are_what_the_generator_writes() -> None:
    assert cli.differences(cli.generate(), cli.PROTOCOL) == []


def test_the_page_of_apis_is_what_the_generator_writes() -> None:
    assert cli.coverage() == cli.PAGE.read_text("utf-8")


def test_generated_lines_fit() -> None:
    too_long = [
        f"{name}: {line}"
        for name, text in cli.generate().items()
        for line in text.splitlines()
        if len(line) > WIDTH
    ]

    assert too_long == []


def test_check_names_stale_missing_and_left_over_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "coverage.md"
    assert cli.main([], tmp_path, page) == 0
    assert cli.main(["--check"], tmp_path, page) == 0
    (tmp_path / "messages" / "fetch.py").unlink()
    (tmp_path / "api_keys.py").write_text("PRODUCE = 1\n", "utf-8")
    (tmp_path / "messages" / "forgotten.py").write_text("", "utf-8")
    page.write_text("# Coverage\n", "utf-8")
    capsys.readouterr()

    assert cli.main(["--check"], tmp_path, page) == 1
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "api_keys.py",
        "messages/fetch.py",
        "messages/forgotten.py",
        "coverage.md",
    ]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [([3], "v3"), ([3, 4, 5], "v3-5"), ([0, 1, 4, 6, 7], "v0-1, v4, v6-7")],
)
def test_version_spans(versions: list[int], expected: str) -> None:
    assert span(versions) == expected


def numbered(name: str, count: int) -> str:
    return ", ".join(f"{name}_number_{number}" for number in range(count))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("    put(a, b)", ["    put(a, b)"], id="a short line stays"),
        pytest.param(
            f"    {numbered('message.field', 6)} = U_iiiiii(buf, pos)",
            [
                "    (",
                "        message.field_number_0, message.field_number_1, message.field_number_2,",
                "        message.field_number_3, message.field_number_4, message.field_number_5,",
                "    ) = U_iiiiii(buf, pos)",
            ],
            id="a read, at its targets",
        ),
        pytest.param(
            f"put(P_i({numbered('argument', 8)}))",
            [
                "put(",
                "    P_i(",
                f"        {numbered('argument', 4)},",
                *[
                    "        "
                    + ", ".join(f"argument_number_{number}" for number in range(4, 8))
                    + ","
                ],
                "    ),",
                ")",
            ],
            id="a call, inside its brackets",
        ),
        pytest.param(
            f"    if {' and '.join(f'length_number_{number} < 128' for number in range(5))}:",
            [
                "    if (",
                "        length_number_0 < 128",
                *(f"        and length_number_{number} < 128" for number in range(1, 5)),
                "    ):",
            ],
            id="a condition, at and",
        ),
        pytest.param(
            f"PA_BnhBnh[{numbered('length', 6)}](value)",
            [
                "PA_BnhBnh[",
                f"    {numbered('length', 5)},",
                "    length_number_5,",
                "](",
                "    value,",
                ")",
            ],
            id="keys before a call, inside their brackets",
        ),
    ],
)
def test_long_lines_are_broken(line: str, expected: list[str]) -> None:
    assert expected == wrap(line)


def test_every_meaning_belongs_to_a_field() -> None:
    structs = [
        struct
        for module in (*APIS, *DATA)
        for message in api_of(module).messages.values()
        for _, struct in message.structs()
    ]
    fields = {field.name for struct in structs for field in struct.fields}
    fields |= {f"{struct.name}.{field.name}" for struct in structs for field in struct.fields}

    assert set(MEANINGS) <= fields


def test_classes_say_what_their_fields_mean() -> None:
    assert FetchPartition.__doc__ is not None
    assert "Attributes:\n" in FetchPartition.__doc__
    assert "fetch_offset: the first offset to return." in FetchPartition.__doc__
    assert NodeEndpoint.__doc__ is not None
    assert "node_id" not in NodeEndpoint.__doc__


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
    page = cli.coverage()

    assert (
        "| [FindCoordinator](../protocol.md#findcoordinator) | 10 | 0 to 6 | 0 to 6 |"
        " producer, consumer, admin | no share groups |" in page
    )
    assert (
        "| AlterClientQuotas | 49 |  | 0 to 1 | admin | there are no quotas for bytes and" in page
    )
    assert "| Vote | 52 |  |  |  | it runs between the controllers of a quorum |" in page
