"""What commands tell of brokers that do not let them in: once."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

import trionet
from support.command_runs import Run

pytestmark = pytest.mark.slow

COMMANDS = [("topics", "list"), ("consume", "t"), ("produce", "t"), ("dashboard", "--once")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_wrong_password_is_reported_once(run: Run, words: tuple[str, ...]) -> None:
    with trionet.testing.broker(sasl="PLAIN") as broker:
        settings = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"]
        settings += ["sasl.username=tester", "sasl.password=wrong"]
        options = [word for setting in settings for word in ("-X", setting)]

        done = run(*words, "-b", broker.bootstrap_servers, *options)

    assert (1, "") == (done.status, done.out)
    assert 1 == done.err.count("Invalid username or password")


def test_an_authority_that_signed_nothing_is_reported_once(run: Run, tmp_path: Path) -> None:
    another = tmp_path / "another.pem"
    trustme.CA().cert_pem.write_to_path(another)
    with trionet.testing.broker(tls=True) as broker:
        settings = ["security.protocol=SSL", "ssl.truststore.type=PEM"]
        settings += [f"ssl.truststore.location={another}"]
        options = [word for setting in settings for word in ("-X", setting)]

        done = run("topics", "list", "-b", broker.bootstrap_servers, *options)

    assert (1, "") == (done.status, done.out)
    assert 1 == done.err.count("the peer's certificate was rejected")
