"""Amazon MSK: tokens that AWS's library signs, let in by our side of OAUTHBEARER."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

import pytest
from trio.testing import MockClock

from support.msk_iam import KEY_ID, SECRET, SignedUrls
from support.sasl_node import SaslNode
from support.secured_clients import is_served, polled_client, refusal
from trionet.client.config._client_config import read_config
from trionet.client.config._client_settings import security_settings
from trionet.client.config._keys import PRODUCER_KEYS
from trionet.client.security._msk_iam import new_token, region_of
from trionet.client.security._settings import IamLogin, SecuritySettings
from trionet.errors import AuthenticationError, ConfigError
from trionet.net.sasl._oauthbearer import OAuthBearerServer
from trionet.testing import MemoryNetwork

pytest.importorskip(
    "aws_msk_iam_sasl_signer", reason="AWS's signer cannot be imported: pip install 'trionet[msk]'"
)

MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
BROKER = "b-1.orders.abc123.c2.kafka.eu-central-1.amazonaws.com"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """AWS's credentials in the environment, and nothing else of AWS."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def security(jaas: str = f"{MODULE} required;") -> SecuritySettings:
    """The settings of Java's clients, without TLS."""
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": jaas,
        "sasl.client.callback.handler.class": (
            "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
        ),
    }
    return security_settings(read_config(PRODUCER_KEYS, given, {}))


def node_of_msk(network: MemoryNetwork, check: SignedUrls) -> SaslNode:
    return SaslNode(network, mechanisms={"OAUTHBEARER": lambda: OAuthBearerServer(check)})


def parameters(login: IamLogin, hosts: tuple[str, ...] = ()) -> dict[str, str]:
    """The parameters of the URL in a new token, whose signature must be good."""
    check = SignedUrls()
    check(new_token(login, hosts).value, 0)
    return check.seen


async def test_a_signed_token_is_let_in(autojump_clock: MockClock) -> None:
    network, check = MemoryNetwork(), SignedUrls()
    node = node_of_msk(network, check)

    async with node.listening(), polled_client(node.address, security(), network) as client:
        assert await is_served(client)

    assert "kafka-cluster:Connect" == check.seen["Action"]
    assert "900" == check.seen["X-Amz-Expires"]
    assert f"{KEY_ID}/" == check.seen["X-Amz-Credential"][: len(KEY_ID) + 1]


async def test_a_token_of_another_secret_is_refused(
    autojump_clock: MockClock, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("AWS_SECRET_ACCESS_KEY", "another")
    network = MemoryNetwork()
    node = node_of_msk(network, SignedUrls())

    async with node.listening():
        found = await refusal(node.address, security(), network)

    assert "invalid_token" in found


def test_the_region_is_that_of_the_broker_or_of_the_environment() -> None:
    assert "/us-east-1/" in parameters(IamLogin())["X-Amz-Credential"]
    assert "/us-east-1/" in parameters(IamLogin(), ("localhost",))["X-Amz-Credential"]
    assert "/eu-central-1/" in parameters(IamLogin(), ("x", BROKER))["X-Amz-Credential"]


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (BROKER, "eu-central-1"),
        ("boot-x.c1.kafka-serverless.US-EAST-2.amazonaws.com", "us-east-2"),
        ("b-2.x.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example.com", None),
        ("10.0.0.1", None),
    ],
)
def test_the_name_of_a_broker_has_its_region(host: str, region: str | None) -> None:
    assert region == region_of([host])


def test_without_a_region_the_error_says_what_to_set(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_REGION")

    with pytest.raises(ConfigError, match="set AWS_REGION"):
        new_token(IamLogin(), ("localhost",))


def test_credentials_and_region_are_those_of_a_profile(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment.delenv("AWS_REGION")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "of another user")
    (tmp_path / "credentials").write_text(
        f"[team]\naws_access_key_id = TEAM\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "config").write_text("[profile team]\nregion = sa-east-1\n")

    found = parameters(IamLogin(profile_name="team"))

    assert found["X-Amz-Credential"].startswith("TEAM/")
    assert "/sa-east-1/" in found["X-Amz-Credential"]


def test_without_credentials_the_error_is_one_of_ours(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")

    with pytest.raises(AuthenticationError, match="no AWS credentials for Amazon MSK: neither"):
        new_token(IamLogin(), (BROKER,))
    with pytest.raises(AuthenticationError, match=r"no AWS credentials for Amazon MSK: .*nobody"):
        new_token(IamLogin(profile_name="nobody"), (BROKER,))


_ROLE = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>
<SessionToken>session</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""
_DENIED = (
    "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
)


@contextmanager
def security_token_service(status: int, body: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server in the place of AWS's; yields its URL, and the forms that it was sent."""
    forms: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            forms.append({name: values[0] for name, values in parse_qs(form).items()})
            forms[-1]["by"] = self.headers["Authorization"].partition("Credential=")[2]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", forms
        finally:
            server.shutdown()
            thread.join()


def test_a_role_is_assumed(environment: pytest.MonkeyPatch) -> None:
    login = IamLogin(
        role_arn="arn:aws:iam::123456789012:role/reader",
        role_session_name="job",
        role_external_id="mine",
        access_key_id="FIRST",
        secret_access_key="secret",
        sts_region="eu-west-1",
    )
    with security_token_service(200, _ROLE) as (url, forms):
        environment.setenv("AWS_ENDPOINT_URL_STS", url)
        found = parameters(login, (BROKER,))

    assert found["X-Amz-Credential"].startswith("ROLE/")
    assert "session" == found["X-Amz-Security-Token"]
    [form] = forms
    assert ("job", "mine") == (form["RoleSessionName"], form["ExternalId"])
    assert form["RoleArn"].endswith("role/reader")
    assert form["by"].startswith("FIRST/")
    assert "/eu-west-1/sts/" in form["by"]


def test_a_role_that_is_not_granted_is_an_error_of_ours(environment: pytest.MonkeyPatch) -> None:
    with security_token_service(403, _DENIED) as (url, _):
        environment.setenv("AWS_ENDPOINT_URL_STS", url)
        with pytest.raises(AuthenticationError, match="AccessDenied"):
            new_token(IamLogin(role_arn="arn:aws:iam::123456789012:role/other"), (BROKER,))


def test_a_role_of_a_profile_is_asked_for_in_the_region_of_the_environment(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """AWS's library for Python has another variable for it, which is not that of the page."""
    (tmp_path / "config").write_text(
        "[profile team]\nrole_arn = arn:aws:iam::123456789012:role/reader\n"
        "credential_source = Environment\n"
    )
    with security_token_service(200, _ROLE) as (url, forms):
        environment.setenv("AWS_ENDPOINT_URL_STS", url)
        found = parameters(IamLogin(profile_name="team"), (BROKER,))

    assert found["X-Amz-Credential"].startswith("ROLE/")
    assert "/us-east-1/sts/" in forms[0]["by"]


def test_a_role_of_a_profile_that_is_not_granted_is_an_error_of_ours(
    environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """AWS's libraries ask for it only when the token is signed."""
    (tmp_path / "config").write_text(
        "[profile team]\nrole_arn = arn:aws:iam::123456789012:role/other\n"
        "credential_source = Environment\nregion = eu-west-1\n"
    )
    with security_token_service(403, _DENIED) as (url, _):
        environment.setenv("AWS_ENDPOINT_URL_STS", url)
        with pytest.raises(AuthenticationError, match="AccessDenied"):
            new_token(IamLogin(profile_name="team"), (BROKER,))


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)

    with pytest.raises(ConfigError, match=r"pip install 'trionet\[msk\]'"):
        new_token(IamLogin(), (BROKER,))
