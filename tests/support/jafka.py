"""The real Jafka: its jars, its server on loopback, and its Java clients, which take commands."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from support.cache import Unavailable, cache_folder, made_once, require_program
from support.kafka_jars import java
from support.ports import free_ports
from support.processes import SAME_TRIONET, first_line, running

JAFKA_VERSION: Final = "3.0.6"
#: The server and the raw clients need no other jar; Jafka's pom asks for many, some by a range.
_JARS: Final = {
    "jafka-3.0.6.jar": "io.jafka:jafka:3.0.6",
    "slf4j-api-1.7.36.jar": "org.slf4j:slf4j-api:1.7.36",
}
_CHECKSUMS: Final = {
    "jafka-3.0.6.jar": "567cb517d172a3e97576612333a2ab303a397764d2fde81fb4ef0a38f768cf61",
    "slf4j-api-1.7.36.jar": "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0",
}
_SOURCE: Final = Path(__file__).with_name("clients") / "JafkaClient.java"
_READY: Final = "trionet jafka ready: 127.0.0.1:"
_SETTINGS: Final = {
    "brokerid": "0",
    "num.threads": "2",
    "enable.zookeeper": "false",
    # What is appended is visible at once, as with trionet.
    "log.flush.interval": "1",
}


def _pom() -> str:
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
        "</exclusions></dependency>\n".format(*coordinates.split(":"))
        for coordinates in _JARS.values()
    )
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        "<groupId>trionet</groupId><artifactId>jafka-jars</artifactId><version>1</version>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def _download(folder: Path) -> None:
    maven = require_program("mvn", "fetches Jafka's jars")
    pom = folder.with_name(f"{folder.name}.pom.xml")
    pom.write_text(_pom())
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={folder}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable("Maven could not fetch Jafka's jars: " + (said[0] if said else "?"))
    for name, expected in _CHECKSUMS.items():
        actual = sha256((folder / name).read_bytes()).hexdigest()
        if actual != expected:
            raise RuntimeError(f"{name}: the SHA-256 is {actual}, not {expected}")


@cache
def jafka_class_path() -> str:
    """Jafka's jars, fetched once by Maven; `Unavailable` if there is no copy and no Maven."""
    folder = made_once(cache_folder() / "jafka" / JAFKA_VERSION, _download)
    return ":".join(str(folder / name) for name in _JARS)


def _java(*arguments: str) -> list[str]:
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
    return [java(), *quick, "-cp", jafka_class_path(), *arguments]


@contextlib.contextmanager
def jafka_server(
    data: Path, settings: Mapping[str, str] | None = None, *, is_tuned: bool = False
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A running server of the real Jafka: its port on every interface, and its process.

    Leaving the block stops it as SIGTERM does: it flushes, and marks the folder as closed.

    Args:
        data: its `log.dir`.
        settings: of the server, in addition to those of every test.
        is_tuned: run it with all of Java's optimisations, which take longer to start.
    """
    [port] = free_ports(1)
    lines = {"port": str(port), "log.dir": str(data), **_SETTINGS, **(settings or {})}
    with tempfile.TemporaryDirectory() as folder:
        properties = Path(folder, "server.properties")
        properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = _java("io.jafka.Jafka", str(properties))
        if is_tuned:
            command = [java(), "-Xmx1g", "-cp", *command[command.index("-cp") + 1 :]]
        with running(command) as process:
            _wait_until_it_listens(port, process)
            yield port, process


@contextlib.contextmanager
def trionet_jafka(
    data: Path, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The same of trionet: `trionet jafka` in a process of its own, as a user starts it."""
    command = [sys.executable, "-m", "trionet", "jafka", "--listen", "127.0.0.1:0"]
    command += ["--data", str(data)]
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        command += ["--set", f"{key}={value}"]
    with running(command, env=SAME_TRIONET) as process:
        line = first_line(process)
        if not line.startswith(_READY):
            raise RuntimeError(f"{line!r} is not the line that says it is ready")
        yield int(line.rpartition(":")[2]), process


def _wait_until_it_listens(port: int, process: subprocess.Popen[bytes], tries: int = 3000) -> None:
    for _ in range(tries):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise RuntimeError(f"Jafka exited with {process.wait(timeout=0.01)} before it listened")
    raise RuntimeError(f"Jafka never listened on port {port}")


#: Both servers, by name: each a context manager of a data folder and settings.
SERVERS: Final[dict[str, Callable[..., contextlib.AbstractContextManager[Any]]]] = {
    "jafka": jafka_server,
    "trionet": trionet_jafka,
}


class JavaClient:
    """Jafka's Java clients of one server, in a JVM that takes commands until the block ends.

    They are `SyncProducer`, `Producer`, `SimpleConsumer` and `AdminOperation`. `Unavailable` is
    raised where there is no Java or no jar.
    """

    def __init__(self, port: int) -> None:
        self._command = _java(str(_SOURCE), "127.0.0.1", str(port))
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._process = self._resources.enter_context(running(self._command))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.__exit__(kind, error, traceback)

    def ask(self, command: str, *words: object) -> Any:
        """What a client saw; bytes go as hex. See JafkaClient.java for the commands."""
        texts = [word.hex() if isinstance(word, bytes) else str(word) for word in words]
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write("\t".join([command, *texts]).encode() + b"\n")
        stdin.flush()
        return json.loads(first_line(self._process))
