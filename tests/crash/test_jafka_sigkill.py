"""A Jafka broker is killed under load: what was readable is there after each restart, unchanged."""

from __future__ import annotations

import random
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from support.processes import SAME_TRIONET, first_line, running
from trionet.jafka._codec import (
    decode_messages,
    decode_offsets,
    encode_messages,
    encode_request,
    valid_bytes,
)
from trionet.jafka._requests import FetchRequest, OffsetRequest, ProducerRequest
from trionet.protocol.records.compression._codecs import GZIP, NONE

KILLS = 50
WRITERS = 3
FILE_BYTES = 20_000
ALL = 2**31 - 1


@contextmanager
def jafka(data: Path) -> Iterator[tuple[Popen[bytes], int]]:
    command = [sys.executable, "-m", "trionet", "jafka", "--listen", "127.0.0.1:0"]
    command += ["--data", str(data), "--set", f"num.partitions={WRITERS}", "--log-level", "error"]
    command += ["--set", f"log.file.size={FILE_BYTES}", "--set", "log.flush.interval=20"]
    with running(command, env=SAME_TRIONET) as process:
        yield process, int(first_line(process).rpartition(":")[2])


def receive(sock: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        data = sock.recv(count - len(found))
        if not data:
            raise EOFError
        found += data
    return bytes(found)


def ask(sock: socket.socket, request: FetchRequest | OffsetRequest) -> bytes:
    sock.sendall(encode_request(request))
    payload = receive(sock, int.from_bytes(receive(sock, 4), "big"))
    assert b"\0\0" == payload[:2]
    return payload[2:]


class Writer:
    """Appends numbered messages to a partition, and knows how far they were readable."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.next = 0
        self.seen = b""
        self._rng = random.Random(partition)

    def write(self, port: int) -> None:
        """Append until the broker is gone."""
        try:
            with socket.create_connection(("127.0.0.1", port)) as sock:
                while True:
                    self._append(sock)
                    [end] = decode_offsets(ask(sock, OffsetRequest("t", self.partition, -1, 1)))
                    self._read(sock, end)
        except (OSError, EOFError):
            pass

    def _append(self, sock: socket.socket) -> None:
        count = self._rng.randrange(1, 40)
        numbers = range(self.next, self.next + count)
        self.next += count
        codec = self._rng.choice([NONE, NONE, GZIP])
        payloads = [b"%d " % number + bytes(self._rng.randrange(200)) for number in numbers]
        request = ProducerRequest("t", self.partition, encode_messages(payloads, codec))
        sock.sendall(encode_request(request))

    def _read(self, sock: socket.socket, end: int) -> None:
        while len(self.seen) < end:
            self.seen += ask(sock, FetchRequest("t", self.partition, len(self.seen), ALL))

    def check(self, port: int) -> None:
        """Everything that was readable is; what follows is whole, and has no message twice."""
        with socket.create_connection(("127.0.0.1", port)) as sock:
            [end] = decode_offsets(ask(sock, OffsetRequest("t", self.partition, -1, 1))) or [0]
            seen, self.seen = self.seen, b""
            self._read(sock, end)
        assert seen == self.seen[: len(seen)]
        assert valid_bytes(self.seen) == end
        found = [int(bytes(each.payload).split()[0]) for each in decode_messages(self.seen, 0, ALL)]
        assert found == sorted(set(found))


@pytest.mark.crash
def test_what_was_readable_survives_kills(tmp_path: Path) -> None:
    rng = random.Random(7)
    writers = [Writer(partition) for partition in range(WRITERS)]
    for _ in range(KILLS):
        with jafka(tmp_path) as (process, port):
            for writer in writers:
                writer.check(port)
            threads = [threading.Thread(target=writer.write, args=(port,)) for writer in writers]
            for thread in threads:
                thread.start()
            threads[0].join(rng.random())
            process.kill()
            for thread in threads:
                thread.join()
    with jafka(tmp_path) as (_, port):
        for writer in writers:
            writer.check(port)
            assert writer.seen


def test_a_kill_loses_nothing_that_was_readable(tmp_path: Path) -> None:
    writer = Writer(0)
    for _ in range(2):
        with jafka(tmp_path) as (process, port):
            writer.check(port)
            thread = threading.Thread(target=writer.write, args=(port,))
            thread.start()
            thread.join(0.1)
            process.kill()
            thread.join()
    with jafka(tmp_path) as (_, port):
        writer.check(port)
