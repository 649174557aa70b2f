"""kfake, franz-go's in-memory Kafka broker, built once from Go's module proxy."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.cache import Unavailable, cache_folder, made_once, require_program
from support.processes import first_line, running

# kfake has no releases: a commit of it, and the franz-go release that it compiles against.
_MODULES = (
    "github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260918054303-01f206a7e32c",
    "github.com/twmb/franz-go@v1.22.2",
)
_MAIN = """\
package main

import (
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(1))
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	os.Stdin.Read(make([]byte, 1)) // until the parent closes the pipe
	cluster.Close()
}
"""


def _build(binary: Path) -> None:
    go = require_program("go", "builds kfake")
    folder = binary.with_name("source")
    folder.mkdir(exist_ok=True)
    (folder / "main.go").write_text(_MAIN)
    (folder / "go.mod").write_text("module trionet/kfake\n\ngo 1.22\n")
    for arguments in (
        ["get", *_MODULES],
        ["build", "-ldflags=-s -w", "-o", str(binary), "."],
    ):
        done = subprocess.run(
            [go, *arguments], check=False, cwd=folder, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise Unavailable(f"kfake could not be built: {done.stderr.strip()[-300:]}")


def kfake_binary() -> Path:
    """The built broker; raises `Unavailable` without a cached one and a Go to build it."""
    return made_once(cache_folder() / "kfake" / "kfake", _build)


@contextlib.contextmanager
def kfake() -> Iterator[tuple[str, int]]:
    """One running broker on a free port of 127.0.0.1: its bootstrap server and process id."""
    with running([kfake_binary()]) as process:
        yield first_line(process), process.pid
