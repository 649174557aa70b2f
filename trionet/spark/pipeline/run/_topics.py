"""The topics of a job, before it starts: the log has to be there, and the results' one is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from trionet.client.admin import Admin, NewTopic, open_admin
from trionet.errors import ApiError, ConfigError
from trionet.net._network import SYSTEM, Network
from trionet.protocol.error_codes import TOPIC_ALREADY_EXISTS

from ._settings import JobSettings

#: How often to look whether the log is there.
LOOK_SECONDS: Final = 1.0
#: A key comes again only with the same value, so that compaction makes duplicates go.
RESULTS_CONFIGS: Final = {"cleanup.policy": "compact,delete"}


async def prepare_topics(
    settings: JobSettings,
    is_stopped: Callable[[], bool],
    tell: Callable[[str], None],
    *,
    network: Network = SYSTEM,
) -> bool:
    """Wait for the log's topic, and make that of the results if it is missing.

    Args:
        settings: of the job.
        is_stopped: whether to give up waiting.
        tell: told once if it has to wait.
        network: where connections come from.

    Returns:
        Whether the topics are there; not, if waiting was given up.

    Raises:
        ConfigError: the log is not there, and the job is to read what is there.
        TrionetError: the cluster could not be asked.
    """
    async with open_admin(settings.bootstrap_servers, settings.admin(), network=network) as admin:
        topics = await admin.list_topics(internal=True)
        if settings.topic not in topics:
            if settings.available_now:
                raise ConfigError(
                    f"there is no topic {settings.topic} at {settings.bootstrap_servers}; a broker"
                    f" makes it that is started with request.log.topic={settings.topic}"
                )
            tell(f"waiting for the topic {settings.topic}")
        while settings.topic not in topics:
            if is_stopped():
                return False
            await trio.sleep(LOOK_SECONDS)
            topics = await admin.list_topics(internal=True)
        if settings.results_topic not in topics:
            await _make(admin, settings.results_topic)
    return True


async def _make(admin: Admin, name: str) -> None:
    made = await admin.create_topics([NewTopic(name, configs=RESULTS_CONFIGS)])
    error = made.errors.get(name)
    was_there = isinstance(error, ApiError) and error.error_code == TOPIC_ALREADY_EXISTS
    if error is not None and not was_there:
        raise error
