"""Apache Kafka's own Java client over secured listeners, in one JVM that takes commands."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import ClassVar

from support.kafka_jars import class_path, java
from support.processes import first_line, running
from support.secured.access import OAUTHBEARER, PLAIN, Access, Failure, Refusal
from support.secured.client import Errors, SecuredClient

_SOURCE = Path(__file__).with_name("SecuredJava.java")
_SECURITY = "org.apache.kafka.common.security"
_FROM_FILE = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"


class Java(SecuredClient):
    """The Java client; `close` ends its JVM. Raises `Unavailable` where there is no Java.

    Args:
        token_files: what it may read tokens from.
    """

    name = "java"
    errors: ClassVar[Errors] = {
        Failure.WRONG_PASSWORD: ("SaslAuthenticationException", r"Authentication failed"),
        Failure.BAD_TOKEN: ("SaslAuthenticationException", r"invalid_token"),
        Failure.EXPIRED_SERVER: ("SslAuthenticationException", r"NotAfter:"),
        Failure.OTHER_HOST: ("SslAuthenticationException", r"matching localhost found"),
        Failure.EXPIRED_CLIENT: ("SslAuthenticationException", r"certificate_expired"),
        Failure.NO_CERTIFICATE: ("SslAuthenticationException", r"certificate_required"),
    }

    def __init__(self, *token_files: Path) -> None:
        allowed = ",".join(file.as_uri() for file in token_files)
        with contextlib.ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            command = [
                *(java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed}",
                *("-cp", class_path(), str(_SOURCE)),
            ]
            self._process = stack.enter_context(running(command))
            self._resources = stack.pop_all()

    def close(self) -> None:
        self._resources.close()

    def exchange(self, access: Access, topic: str, value: bytes) -> bytes:
        return self._ask("exchange", access, topic, value.decode()).encode()

    def refusals(self, access: Access) -> Generator[Refusal]:
        kind, nanoseconds, text = self._ask("refusal", access).split("\t")
        yield Refusal(kind, text, int(nanoseconds) / 1e9)

    def _ask(self, word: str, access: Access, *arguments: str) -> str:
        file = self._folder / "properties"
        lines = [f"{key}={value}\n" for key, value in _properties(access).items()]
        file.write_text("".join(lines))
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write("\t".join((word, str(file), *arguments)).encode() + b"\n")
        stdin.flush()
        verdict, _, answer = first_line(self._process).partition("\t")
        if verdict != "ok":
            raise RuntimeError(f"the Java client says: {answer}")
        return answer


def _properties(access: Access) -> dict[str, str]:
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": access.protocol,
        "request.timeout.ms": "10000",
        "default.api.timeout.ms": "10000",
    }
    if access.has_tls:
        settings["ssl.truststore.type"] = "PEM"
        settings["ssl.truststore.location"] = str(access.trust)
    if access.certificate is not None:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.location"] = str(access.certificate)
    if access.mechanism:
        settings["sasl.mechanism"] = access.mechanism
        settings["sasl.jaas.config"] = _login_module(access)
    if access.token_file is not None:
        settings["sasl.login.callback.handler.class"] = _FROM_FILE
        settings["sasl.oauthbearer.token.endpoint.url"] = access.token_file.as_uri()
    return settings


def _login_module(access: Access) -> str:
    if access.is_unsecured:
        sub = f'unsecuredLoginStringClaim_sub="{access.user}"'
        return f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required {sub};"
    if access.mechanism == OAUTHBEARER:
        return f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
    module = "plain.PlainLoginModule" if access.mechanism == PLAIN else "scram.ScramLoginModule"
    return f'{_SECURITY}.{module} required username="{access.user}" password="{access.password}";'
