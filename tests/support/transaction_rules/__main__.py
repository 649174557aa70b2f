"""Write down what Apache Kafka responds: ``python -m support.transaction_rules`` in ``tests``."""

from __future__ import annotations

import json

import trio

from support.kafka_node import kafka_node
from support.transaction_rules.rules import RULES, SCENARIOS, SETTINGS, play_all


def main() -> None:
    """Play every scenario against a new node, and replace the file."""
    with kafka_node(SETTINGS) as (address, _):
        lines = trio.run(play_all, address, SCENARIOS)
    RULES.write_text(json.dumps(lines, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
