"""Prepares the topics of a job: waits for the request log and creates the results topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from trionet.client.admin import Admin, NewTopic, open_admin
from trionet.errors import ApiError, ConfigError
from trionet.net._network import SYSTEM, Network
from trionet.protocol.error_codes import TOPIC_ALREADY_EXISTS

from ._settings import JobSettings

#: How often to check whether the topic of the request log exists.
CHECK_SECONDS: Final = 1.0
#: A repeated key always has the same value, so that compaction removes the duplicates.
RESULTS_CONFIGS: Final = {"cleanup.policy": "compact,delete"}


async def prepare_topics(
    settings: JobSettings,
    is_stopped: Callable[[], bool],
    report: Callable[[str], None],
    *,
    network: Network = SYSTEM,
) -> bool:
    """Wait for the topic of the request log, and create the results topic if it is missing.

    Args:
        settings: the settings of the job.
        is_stopped: returns whether to stop waiting.
        report: called once, with a message, if the topic does not exist yet.
        network: the network on which connections are made.

    Returns:
        True if the topics exist; False if waiting was stopped.

    Raises:
        ConfigError: the request log does not exist, and the job only reads available records.
        TrionetError: the cluster cannot be queried.
    """
    async with open_admin(settings.bootstrap_servers, settings.admin(), network=network) as admin:
        topics = await admin.list_topics(internal=True)
        if settings.topic not in topics:
            if settings.available_now:
                raise ConfigError(
                    f"topic {settings.topic} does not exist at {settings.bootstrap_servers}; start"
                    f" the broker with request.log.topic={settings.topic} to create it"
                )
            report(f"waiting for the topic {settings.topic}")
        while settings.topic not in topics:
            if is_stopped():
                return False
            await trio.sleep(CHECK_SECONDS)
            topics = await admin.list_topics(internal=True)
        if settings.results_topic not in topics:
            await _create(admin, settings.results_topic)
    return True


async def _create(admin: Admin, name: str) -> None:
    created = await admin.create_topics([NewTopic(name, configs=RESULTS_CONFIGS)])
    error = created.errors.get(name)
    already_exists = isinstance(error, ApiError) and error.error_code == TOPIC_ALREADY_EXISTS
    if error is not None and not already_exists:
        raise error
