"""A few rounds of ``python3 tests loss`` and ``python3 tests flips``, and what they would find."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from damage.folder import History
from damage.rounds import run_round
from damage.strike import Strike, flip, take_away
from damage.verdict import complaints, covered, not_served

ROUNDS = 25


@pytest.mark.slow
@pytest.mark.parametrize("strike", [take_away, flip])
def test_what_befalls_a_folder_is_reported(strike: Strike) -> None:
    outcomes = [run_round(seed, strike) for seed in range(ROUNDS)]

    assert [] == [outcome for outcome in outcomes if outcome.wrong]
    assert any(outcome.reports for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strike", "seed", "only"),
    [
        # The segment of the recovery point had ended, and was cut.
        pytest.param(take_away, 64, "*.log"),
        pytest.param(take_away, 206, "*.log"),
        # Not only the records: also the file that says what topics there are.
        pytest.param(take_away, 30, "trionet.sqlite"),
        pytest.param(take_away, 63, "trionet.sqlite-wal"),
        pytest.param(flip, 421, "trionet.sqlite"),
        pytest.param(flip, 21, "trionet.sqlite"),
        # An entry of an index that leads too far, and an offset that no CRC covers.
        pytest.param(flip, 343, "*.index"),
        pytest.param(flip, 104, "*.log"),
        # A batch that ends before it begins: nothing behind it can be found.
        pytest.param(flip, 10680, "*"),
        pytest.param(flip, 10775, "*"),
    ],
)
def test_what_was_found_once(strike: Strike, seed: int, only: str) -> None:
    assert [] == run_round(seed, strike, only).wrong


# What a round would find.

PARTITION = "t", 0


def history(tmp_path: Path) -> History:
    values = {offset: b"%d" % offset for offset in range(10)}
    return History(tmp_path, acknowledged={PARTITION: values}, promised={PARTITION: 8})


def found_without(*gone: int) -> dict[int, bytes | None]:
    return {offset: b"%d" % offset for offset in range(10) if offset not in gone}


def judged(
    tmp_path: Path,
    found: dict[int, bytes | None],
    next_offset: int = 10,
    reports: tuple[str, ...] = (),
    *,
    unpromised_may_go: bool = False,
) -> list[str]:
    return complaints(
        history(tmp_path),
        PARTITION,
        found,
        next_offset,
        list(reports),
        unpromised_may_go=unpromised_may_go,
    )


def test_records_that_are_gone_have_to_be_reported(tmp_path: Path) -> None:
    assert [] == judged(tmp_path, found_without())
    assert ["t-0: offset 3 is gone, and nobody was told"] == judged(tmp_path, found_without(3))

    report = "t-0: 2 records are missing, offsets 3 to 4, 20 bytes: there is no file"
    assert [] == judged(tmp_path, found_without(3, 4), 10, (report,))
    assert 1 == len(judged(tmp_path, found_without(3, 4, 5), 10, (report,)))
    assert 1 == len(judged(tmp_path, found_without(3), 10, (report.replace("t-0", "t-1"),)))


def test_records_that_are_not_as_they_were_are_found(tmp_path: Path) -> None:
    other = {**found_without(), 3: b"other"}

    assert ["t-0: offset 3 has another value, and nobody can see that"] == judged(tmp_path, other)
    assert [] == judged(tmp_path, {**other, 3: None})  # its CRC shows it
    assert 1 == len(judged(tmp_path, {**found_without(), 11: b"new"}))


def test_offsets_that_are_given_again_are_found(tmp_path: Path) -> None:
    report = (
        "t-0: truncated at offset 5, byte 100 of 00000000000000000000.log: zeros; dropped 5 bytes"
    )

    assert [] == judged(tmp_path, found_without(8, 9), 8, unpromised_may_go=True)
    assert "t-0: offset 7 is given again, 8 was promised" in judged(
        tmp_path, found_without(7, 8, 9), 7, (report,), unpromised_may_go=True
    )


def test_reports_are_read(tmp_path: Path) -> None:
    stray = (
        "t-x-1: no topic has this partition; its directory is kept as t-x-1.00-stray and not served"
    )
    reports = ["t-0: 1 record is missing, offset 7: there is no file", stray, "something else"]

    assert {("t", 0): [(7, 7)], ("t-x", 1): [(0, 2**63)]} == covered(reports)
    assert {("t-x", 1)} == not_served(reports)


def test_damage_is_that_of_its_seed(tmp_path: Path) -> None:
    folders = []
    for number in range(2):
        partition = tmp_path / str(number) / "t-0"
        partition.mkdir(parents=True)
        (partition / "00000000000000000000.log").write_bytes(bytes(range(200)))
        (partition.parent / "meta.properties").write_bytes(b"some text")
        folders.append(partition.parent)

    for seed in range(20):
        copies = [shutil.copytree(folder, folder / "copy") for folder in folders]
        first, second = (flip(copy, random.Random(seed)) for copy in copies)
        assert first == second
        for copy in copies:
            shutil.rmtree(copy)
