"""One moment of the demo, for what shows it."""

from __future__ import annotations

from typing import Final

from demo.figures import Figures

FIGURES: Final = Figures(
    seconds=3.04,
    clock="2013-07-02 17:05",
    produced=2699,
    produced_rate=912.4,
    consumed=2690,
    consumed_rate=911.0,
    committed=1801,
    delay_p50=7.2,
    delay_p99=12.4,
    request_rates={"Metadata": 0.2, "Fetch": 217.0, "Produce": 252.0},
    bytes_in_rate=215_600.0,
    bytes_out_rate=218.0,
    members={"consumer-10": [1, 2], "consumer-9": [0]},
    generation=5,
    connections=3,
    idle_ratio=0.893,
    request_queue=0,
    histories={
        "produced_rate": (0.0, 912.4),
        "consumed_rate": (0.0, 911.0),
        "lag": (0, 9),
        "commit_lag": (0, 898),
        "delay_p99": (None, 12.4),
    },
    times=(2.79, 3.04),
)
