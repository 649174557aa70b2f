"""kcat over secured listeners."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Generator
from typing import ClassVar

from support.cache import require_program
from support.secured.access import OAUTHBEARER, Access, Failure, Refusal
from support.secured.client import PATIENCE_SECONDS, Errors, SecuredClient

# Level, time, kind and client come before what a line of librdkafka's log says.
_ERROR = re.compile(r"^%3\|[^|]*\|(?P<kind>\w+)\|[^|]*\| (?:\[[^\]]*\]: )?(?P<text>.*)$")


class Kcat(SecuredClient):
    """The command; tokens it can only make by itself, unsigned ones."""

    name = "kcat"
    errors: ClassVar[Errors] = {
        Failure.WRONG_PASSWORD: ("FAIL", r"SASL authentication error: Authentication failed"),
        Failure.EXPIRED_SERVER: ("FAIL", r"certificate verify failed"),
        Failure.OTHER_HOST: ("FAIL", r"certificate verify failed"),
        Failure.EXPIRED_CLIENT: ("FAIL", r"certificate expired"),
        Failure.NO_CERTIFICATE: ("FAIL", r"certificate required"),
    }

    def __init__(self) -> None:
        self._kcat = require_program("kcat", "a foreign client")

    def _command(self, access: Access, *arguments: str) -> list[str]:
        settings = {"security.protocol": access.protocol}
        if access.has_tls:
            settings["ssl.ca.location"] = str(access.trust)
        if access.certificate is not None:
            settings["ssl.certificate.location"] = str(access.certificate)
            settings["ssl.key.location"] = str(access.certificate)
        if access.mechanism:
            settings["sasl.mechanism"] = access.mechanism
        if access.mechanism == OAUTHBEARER:
            settings["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
            settings["sasl.oauthbearer.config"] = f"principal={access.user}"
        elif access.mechanism:
            settings |= {"sasl.username": access.user, "sasl.password": access.password}
        options = [option for pair in settings.items() for option in ("-X", "=".join(pair))]
        return [self._kcat, "-b", access.bootstrap, *options, *arguments]

    def exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        write = self._command(access, "-P", "-t", topic, "-p", "0")
        read = self._command(access, "-C", "-q", "-t", topic, "-p", "0", "-o", "0", "-c", "1")
        _run(write, value + b"\n")
        return _run(read).removesuffix(b"\n")

    def refusals(self, access: Access) -> Generator[Refusal]:
        begin = time.perf_counter()
        process = subprocess.Popen(
            self._command(access, "-P", "-t", "refused"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        end = threading.Timer(PATIENCE_SECONDS, process.kill)  # it would go on trying
        end.start()
        with process:
            assert process.stderr is not None
            try:
                for line in process.stderr:
                    if found := _ERROR.match(line.decode(errors="replace")):
                        yield Refusal(found["kind"], found["text"], time.perf_counter() - begin)
            finally:
                end.cancel()
                process.kill()


def _run(command: list[str], stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        command, check=False, input=stdin, capture_output=True, timeout=PATIENCE_SECONDS
    )
    if done.returncode != 0:
        raise RuntimeError(f"kcat failed: {done.stderr.decode(errors='replace')[-500:]}")
    return done.stdout
