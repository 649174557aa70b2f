"""What `num.network.threads` does on one loop: the echo benchmark with 1, 3 and 8 processors."""

from __future__ import annotations

from bench.echo import PAYLOAD_BYTES, measure_servers
from bench.measured import Measured
from bench.options import Options

RUNS = 5
SECONDS = 1.0
CONNECTIONS = (8, 64, 512)
SERVERS = {
    "1 processor": ("echo_trionet.py", "1"),
    "3 processors": ("echo_trionet.py", "3"),
    "8 processors": ("echo_trionet.py", "8"),
}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    title = f"echo of {PAYLOAD_BYTES} bytes, server on one core"
    return measure_servers(title, SERVERS, CONNECTIONS, options)
