"""Clients of a broker whose every name is an attack on the terminal of whoever looks at them.

As a program: ``strangers.py HOST:PORT``; it prints a line when all of it is there.
"""

from __future__ import annotations

import sys

import trio

from support import crowd
from support.escapes import ON_THE_WIRE
from trionet import open_producer
from trionet.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from trionet.testing import open_raw_peer


async def main(address: str) -> None:
    """Come to a broker, and stay."""
    async with trio.open_nursery() as nursery:
        for name in ON_THE_WIRE:
            await nursery.start(_join, address, name)
        await _write(address)
        await crowd.main(address, 1, ON_THE_WIRE)


async def _write(address: str) -> None:
    """Have records whose keys, values and headers are hostile, once their topic is there."""
    async with open_producer(address) as producer:
        for name in ON_THE_WIRE:
            data = name.encode()
            await producer.send("hostile", data, key=data, headers=[(name, data)])


async def _join(address: str, name: str, *, task_status: trio.TaskStatus[None]) -> None:
    """Be a member whose id of an instance, protocol and group have this name."""
    async with open_raw_peer(address) as peer:
        request = JoinGroupRequest(
            group_id=f"member of {name}",
            session_timeout_ms=600_000,
            rebalance_timeout_ms=600_000,
            group_instance_id=name,
            protocol_type=name,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=b"")],
        )
        await peer.call(request, 5)
        task_status.started()
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
