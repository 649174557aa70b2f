"""``trionet decode`` as its users start it: what it prints where, and with which exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.calls import batch
from support.decoding import framed, request, response
from support.processes import SAME_TRIONET
from trionet.cli.main import main
from trionet.protocol.api_keys import ALTER_CLIENT_QUOTAS, HEARTBEAT, METADATA
from trionet.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntryData,
)
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.protocol.messages.registry import APIS

FRAMES = Path(__file__).parent / "frames"
COMMAND = [sys.executable, "-m", "trionet", "decode"]
ENVIRONMENT = {**os.environ, **SAME_TRIONET}
ASKED = request(MetadataRequest(topics=None), METADATA, 12, 7, "shop")
RED = "\x1b[31m"


def run(*arguments: str | Path, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=text,
        capture_output=True,
        check=False,
        cwd=FRAMES,
        env=ENVIRONMENT,
        timeout=60,
    )


def documents(*arguments: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    main(["decode", "--json", *arguments])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python"])
def test_what_real_clients_and_a_broker_said_is_read_field_by_field(name: str) -> None:
    """The frames were recorded between these clients and a broker of ours."""
    done = run("--json", f"{name}.bin")

    assert f"trionet decode: {name}.bin: raw, size-prefixed frames\n" == (done.stderr.decode())
    assert (FRAMES / f"{name}.jsonl").read_text("utf-8") == done.stdout.decode()
    assert 0 == done.returncode


def test_what_was_said_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The golden values, as somebody who asks for them finds them."""
    path = str(FRAMES / "confluent-kafka.bin")
    found = documents(path, "--api", "Produce", "--api", "joingroup", "--api", "14", capsys=capsys)

    assert ["Produce"] * 2 + ["JoinGroup"] * 4 + ["SyncGroup"] * 2 == [
        each["api"] for each in found
    ]
    partition = found[0]["body"]["topic_data"][0]["partition_data"][0]
    [records] = partition["records"]
    assert ("gzip", True) == (records["codec_name"], records["crc_right"])
    assert [f"coffee {number}" for number in range(5)] == [
        each["value"]["text"] for each in records["records"]
    ]
    assert ["orders"] == found[2]["body"]["protocols"][0]["metadata"]["topics"]
    assert "MEMBER_ID_REQUIRED" == found[3]["body"]["error_code_name"]
    assert [{"topic": "orders", "partitions": [0]}] == (
        found[7]["body"]["assignment"]["assigned_partitions"]
    )


@pytest.mark.slow
def test_people_get_lines() -> None:
    done = run(ASKED.hex(" "))

    assert (0, b"trionet decode: argument: hex, one message without a size prefix\n") == (
        done.returncode,
        done.stderr,
    )
    assert (
        "#1 request Metadata v12 (key 3), 19 bytes at 0\n"
        '  header: {correlation_id: 7, client_id: "shop"}\n'
        "  body: {topics: null, allow_auto_topic_creation: true, "
        "include_topic_authorized_operations: false}\n"
        "\n"
    ) == done.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("form", [framed(ASKED), framed(ASKED).hex().encode()])
def test_standard_input_is_read(form: bytes) -> None:
    done = run("--json", text=form)

    assert "Metadata" == json.loads(done.stdout)["api"]
    assert b"standard input" in done.stderr


def test_a_segment_of_a_log_is_recognised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(batch(b"one") + batch(b"two", base_offset=1))
    found = documents(str(segment), "--skip", "1", "--limit", "1", capsys=capsys)

    [entry] = found
    assert (2, "batch", len(batch(b"one"))) == (entry["number"], entry["kind"], entry["offset"])
    assert "two" == entry["body"]["records"][0]["value"]["text"]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_numbers_that_json_lacks_are_texts(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    op = OpData(key="producer_byte_rate", value=float(number))
    quotas = AlterClientQuotasRequest(entries=[RequestEntryData(ops=[op])])
    data = framed(request(quotas, ALTER_CLIENT_QUOTAS, 1))

    [entry] = documents(data.hex(), capsys=capsys)

    assert number == entry["body"]["entries"][0]["ops"][0]["value"]


def test_requests_and_responses_may_be_in_files_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = FRAMES / "kafka-python.bin"
    data = frames.read_bytes()
    for kind in ("request", "response"):
        with (tmp_path / kind).open("wb") as file:
            for each in documents(str(frames), capsys=capsys):
                if each["kind"] == kind and each["number"] <= 4:
                    file.write(data[each["offset"] : each["offset"] + each["size"]])
    names = [str(tmp_path / kind) for kind in ("request", "response")]

    found = documents(*names, capsys=capsys)

    assert [None, None, 1, 2] == [each.get("answers") for each in found]
    assert names == list(dict.fromkeys(each["source"] for each in found))


def test_a_response_is_said_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    answer = response(HeartbeatResponse(), HEARTBEAT, 0).hex()

    [found] = documents(answer, "--response", "Heartbeat:0", capsys=capsys)
    assert (0, None) == (found["version"], found["problem"])
    [found] = documents(answer, "--response", "12", capsys=capsys)
    assert (0, None) == (found["version"], found["problem"])


def test_only_those_asked_for_count(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FRAMES / "kafka-python.bin")
    found = documents(path, "--api", "Metadata", "--skip", "1", "--limit", "1", capsys=capsys)

    assert [("response", 4)] == [(each["kind"], each["number"]) for each in found]


def test_long_values_are_cut_unless_all_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(batch(b"x" * 300))

    for options, value in (
        ([], {"bytes": 300, "text": "x" * 200, "cut": True}),
        (["--full"], {"bytes": 300, "text": "x" * 300}),
    ):
        [found] = documents(str(path), *options, capsys=capsys)
        assert value == found["body"]["records"][0]["value"]
    main(["decode", str(path)])
    assert f'value: "{"x" * 200}"… (300 bytes)' in capsys.readouterr().out


def test_malformed_frames_are_exit_status_1_and_do_not_stop_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 1 == main(["decode", (framed(ASKED[:-1]) + framed(ASKED)).hex()])

    printed = capsys.readouterr().out
    assert (
        "  malformed at byte 20: MetadataRequest: the frame ends too early, after topics\n"
        in printed
    )
    assert "#2 request Metadata v12" in printed
    assert 1 == main(["decode", framed(ASKED)[:-4].hex()])
    assert (
        "  truncated at byte 19: 4 of 19 bytes are missing; MetadataRequest: "
        in capsys.readouterr().out
    )
    assert 0 == main(["decode", (framed(ASKED[:-1]) + framed(ASKED)).hex(), "--skip", "1"])


def test_nothing_that_a_terminal_obeys_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    topic = MetadataRequestTopic(name=f"{RED}\u202e\x07")
    hostile = request(MetadataRequest(topics=[topic]), METADATA, 9, 1, f"{RED}\x9bclient")

    for options in ([], ["--json"]):
        assert 0 == main(["decode", framed(hostile).hex(), *options])
        printed = capsys.readouterr().out
        assert all(each.isprintable() or each == "\n" for each in printed)
        assert "\\u001b[31m\\u202e\\u0007" in printed


@pytest.mark.slow
def test_a_terminal_gets_colours_and_nothing_of_the_frames() -> None:
    """What is between the colours is what is printed elsewhere."""
    hostile = framed(request(MetadataRequest(topics=None), METADATA, 9, 1, f"{RED}[bold]:smile:"))
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, hostile.hex()],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "20", "NO_COLOR": ""},
    ) as process:
        os.close(slave)
        printed = _read_all(master)
        assert 0 == process.wait()
    os.close(master)

    assert "\x1b[" in printed
    plain = re.sub(r"\x1b\[[0-9;]*m", "", printed).replace("\r\n", "\n")
    assert run(hostile.hex()).stdout.decode() == plain
    assert 'client_id: "\\u001b[31m[bold]:smile:"' in plain


def _read_all(descriptor: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_error_to_speak_of(tmp_path: Path) -> None:
    path = tmp_path / "frames"
    path.write_bytes(framed(ASKED) * 5000)
    with subprocess.Popen(
        [*COMMAND, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdout
        assert process.stderr
        assert b"#1 request" == process.stdout.read(10)
        process.stdout.close()
        error = process.stderr.read()

    assert f"trionet decode: {path}: raw, size-prefixed frames\n" == error.decode()


@pytest.mark.slow
def test_frames_of_a_pipe_are_shown_as_they_come() -> None:
    with subprocess.Popen(
        [*COMMAND, "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    ) as process:
        assert process.stdin
        assert process.stdout
        for number in (1, 2):
            process.stdin.write(framed(ASKED))
            process.stdin.flush()
            assert number == json.loads(process.stdout.readline())["number"]
        process.stdin.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-file.bin"], r"no-such-file\.bin: no such file, and neither hex nor base64"),
        (["/tmp/no-such-file"], r"/tmp/no-such-file: no such file, and neither hex nor base64"),
        (["/tmp/\x1b[31mred"], r"/tmp/\\u001b\[31mred: no such file"),
        (["/"], r"/: Is a directory"),
        (["00zz", "--format", "hex"], r"00zz: 'z' is not a hex digit"),
        (["00", "--api", "Prodcue"], r"Prodcue: unknown API; the closest match is Produce"),
        (["00", "--api", "999"], r"999: unknown API; --list shows the known ones"),
        (
            ["00", "--response", "Fetch:99"],
            r"--response Fetch:99: unsupported version of Fetch; expected \d+ to \d+",
        ),
        (
            [batch(b"a").hex(), "--api", "Fetch"],
            r"--response and --api do not apply to record batches",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["decode", *arguments])

    printed = capsys.readouterr()
    assert "" == printed.out
    assert re.fullmatch(rf"trionet decode: .*{message}.*\n", printed.err)


def test_names_of_files_are_printed_as_what_is_in_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{RED}name"
    path.write_bytes(framed(ASKED))

    assert 0 == main(["decode", str(path)])
    printed = capsys.readouterr()
    assert "\\u001b[31mname: raw" in printed.err
    assert "\x1b" not in printed.err + printed.out


def test_a_closed_standard_input_is_said_to_be_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as Python does after a shell's <&-

    assert 2 == main(["decode"])
    assert "standard input is closed" in capsys.readouterr().err


def test_an_empty_argument_is_empty_hex(capsys: pytest.CaptureFixture[str]) -> None:
    """A shell's variable that is not set."""
    assert 0 == main(["decode", ""])
    assert "trionet decode: argument: hex, empty\n" == capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--limit", "-1"], ["--frames", "--batches"]])
def test_options_that_cannot_be_are_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["decode", "00", *arguments])

    assert 2 == stopped.value.code


def test_the_known_apis_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["decode", "--list"])
    lines = capsys.readouterr().out.splitlines()
    assert len(APIS) == len(lines)
    assert ["3", "Metadata", "0-13", "flexible", "from", "9"] in [line.split() for line in lines]

    assert 0 == main(["decode", "--list", "--json"])
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(APIS) == [each["api_key"] for each in listed]
    assert {
        "api": "Metadata",
        "api_key": 3,
        "first_version": 0,
        "last_version": 13,
        "first_flexible_version": 9,
    } in listed


@pytest.mark.slow
def test_nothing_is_loaded_that_is_not_needed() -> None:
    program = f"""
import sys
from trionet.cli.main import main
main(["decode", {ASKED.hex()!r}])
loaded = {{name.partition(".")[0] for name in sys.modules}}
assert not loaded & {{"trio", "rich", "attr", "sqlite3", "logging", "kio"}}, loaded
assert "trionet.protocol.messages.fetch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=False)

    assert 0 == done.returncode
