"""Tokens for Amazon MSK: a request to AWS, signed with AWS's credentials, as a bearer token.

Brokers of MSK accept the signature by AWS's own mechanism, AWS_MSK_IAM, and on the same port by
OAUTHBEARER, where the token is the signed URL in Base64. AWS publishes a library for the latter
only, so both settings lead to it. (Java: aws-msk-iam-auth.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final

from ...errors import AuthenticationError, ConfigError
from ._settings import BearerToken, IamLogin

_HOST: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\.?")


def region_of(hosts: Iterable[str]) -> str | None:
    """Return the region in the name of a broker of MSK; None if no name has one."""
    found = (_HOST.search(host.lower()) for host in hosts)
    return next((match[1] for match in found if match is not None), None)


def new_token(login: IamLogin, hosts: Iterable[str]) -> BearerToken:
    """Return a token, which is good for 15 minutes.

    It may wait for AWS, for the credentials of a role or of the machine.

    Args:
        login: where the credentials come from.
        hosts: the names of brokers, which say the region; without one of MSK, AWS's own settings
            do, such as ``AWS_REGION``.

    Raises:
        ConfigError: AWS's library is not installed, or the region is not known.
        AuthenticationError: there are no credentials, or AWS does not grant the role.
    """
    try:
        signer = import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
        aws: Any = import_module("botocore.session")
        errors = import_module("botocore.exceptions")
        provider = import_module("botocore.credentials").CredentialProvider
    except ImportError:
        raise ConfigError(
            "sasl.mechanism = AWS_MSK_IAM requires a package: pip install 'trionet[msk]'"
        ) from None
    try:
        session = aws.Session(profile=login.profile_name or None)
        if configured := os.environ.get("AWS_REGION"):  # of Java's; Python's library has another
            session.set_config_variable("region", configured)
        region = region_of(hosts) or _configured_region(session)
        credentials = _role(session, login) if login.role_arn else session.get_credentials()
        if credentials is None:
            raise AuthenticationError(
                "no AWS credentials for Amazon MSK: neither the environment nor a profile nor the"
                " role of the machine has any"
            )

        class Found(provider):  # type: ignore[misc, valid-type]
            def load(self) -> object:
                return credentials

        # Those of a profile's role, or of the machine, are asked for only now.
        token, expires_ms = signer.generate_auth_token_from_credentials_provider(region, Found())
    except (errors.BotoCoreError, errors.ClientError) as error:
        raise AuthenticationError(f"no AWS credentials for Amazon MSK: {error}") from error
    return BearerToken(token, expires_ms)


def _configured_region(session: Any) -> str:
    region: str | None = session.get_config_variable("region")
    if region is None:
        raise ConfigError(
            "the AWS region is not known: no server in bootstrap.servers has a name of Amazon MSK;"
            " set AWS_REGION"
        )
    return region


def _role(session: Any, login: IamLogin) -> object:
    """Return the credentials of the role that is to be assumed."""
    given = {
        "aws_access_key_id": login.access_key_id,
        "aws_secret_access_key": login.secret_access_key,
        "aws_session_token": login.session_token,
    }
    region = login.sts_region or _configured_region(session)
    client = session.create_client(
        "sts", region_name=region, **{name: text for name, text in given.items() if text}
    )
    wanted = {"RoleArn": login.role_arn, "RoleSessionName": login.role_session_name}
    if login.role_external_id:
        wanted["ExternalId"] = login.role_external_id
    found = client.assume_role(**wanted)["Credentials"]
    return import_module("botocore.credentials").Credentials(
        found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"]
    )
