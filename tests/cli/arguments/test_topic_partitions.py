"""Partitions as a command line names them, and files of offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from trionet.cli.arguments._topic_partitions import parse_partitions, parse_topic, read_offsets
from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError

ROWS = '[{"topic":"a","partition":0,"offset":7}, {"topic":"b","partition":2,"offset":0}]'
EXPECTED = {TopicPartition("a", 0): 7, TopicPartition("b", 2): 0}


def test_a_topic_may_have_partitions() -> None:
    assert ("orders", None) == parse_topic("orders")
    assert ("orders", [0, 2]) == parse_topic("orders:2,0,2")


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:x", "a:-1", "a:1,"])
def test_what_is_no_partition_is_reported(text: str) -> None:
    with pytest.raises(ConfigError, match="expected"):
        parse_topic(text)


def test_partitions_may_be_given_one_by_one() -> None:
    assert [0, 1, 5] == parse_partitions(["5,1", "0"])


@pytest.mark.parametrize(
    "text",
    [
        "a,0,7\nb,2,0\n",
        "a 0 7\n\nb\t2\t0\n",
        "# a remark\r\na,0,7\r\nb,2,0\r\n",
        "topic,partition,offset\na,0,7\nb,2,0\n",
        "group,topic,partition,before,offset\ng,a,0,,7\ng,b,2,3,0\n",
        "TOPIC PARTITION OFFSET\na 0 7\nb 2 0\n",
        ROWS,
        f'{{"partitions":{ROWS}}}',
    ],
)
def test_offsets_are_read_in_the_forms_that_tools_write(text: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_text(text)

    assert EXPECTED == read_offsets(str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no offsets"),
        ("topic,partition,offset\n", "contains no offsets"),
        ("a,0\n", ":1: invalid row 'a,0'"),
        ("a,0,7\na,x,7\n", ":2: invalid row 'a,x,7'"),
        ("a,-1,7\n", ":1: invalid partition a--1"),
        ("a,0,7\na,0,8\n", ":2: duplicate partition a-0"),
        ("[1]", "row 1: not an object"),
        ("[{}]", "row 1: invalid row ''"),
        ("{}", "contains no rows"),
        ("[", "is not valid JSON"),
        ("\xff\xfe", "is not valid UTF-8"),
        ("x" * 300, "invalid row"),
    ],
)
def test_a_file_that_is_none_says_where(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(ConfigError, match=message):
        read_offsets(str(file))


def test_a_file_that_is_not_there_is_reported() -> None:
    with pytest.raises(ConfigError, match="cannot read /nowhere: No such file"):
        read_offsets("/nowhere")
