"""Settings of topics, brokers, groups and client metrics, and the levels of loggers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from ....errors import TrionetError, UnsupportedVersionError
from ....protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ....protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ....protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ..._node import Node
from ..calls._argument_checks import items, mapping, names
from ..calls._calls import Place
from ..calls._conversions import AdminCalls, Setting, check, failure, setting_text
from ..calls._nodes import CONTROLLER_CODES
from ..calls._results import Results
from ..calls._wire_enum import WireEnum


class ConfigResourceType(WireEnum):
    """What has settings, by Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(WireEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_CLIENT_METRICS = 7
    DYNAMIC_GROUP = 8


class ConfigType(WireEnum):
    """What kind of value a setting takes."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@attrs.frozen
class ConfigResource:
    """Something that has settings.

    Attributes:
        type: what it is.
        name: of the topic, group or subscription; the id of the broker as a text, and nothing for
            what holds for all brokers.
    """

    type: ConfigResourceType
    name: str


@attrs.frozen
class ConfigSynonym:
    """One of the places where a value is looked for.

    Attributes:
        name: the key there.
        value: what it says.
        source: which place it is.
    """

    name: str
    value: str | None
    source: ConfigSource


@attrs.frozen
class ConfigEntry:
    """A setting.

    Attributes:
        name: its key.
        value: None for a secret, or where there is none.
        source: where the value comes from.
        is_read_only: it cannot be changed while the broker runs.
        is_sensitive: it is a secret.
        type: what kind of value it takes.
        synonyms: where its value was looked for, the first that had one first; if asked for.
        documentation: what it is for; if asked for and the broker has it.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT


@attrs.frozen
class Append:
    """Add something to a setting that is a list.

    Attributes:
        value: what to add; several with commas.
    """

    value: str


@attrs.frozen
class Subtract:
    """Take something out of a setting that is a list.

    Attributes:
        value: what to take out; several with commas.
    """

    value: str


_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3


class ConfigCalls(AdminCalls):
    """Calls about settings."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        keys: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Read settings.

        Args:
            resources: of what.
            keys: these only; None for all.
            include_synonyms: tell, too, where values were looked for.
            include_documentation: tell, too, what they are for.

        Returns:
            By resource, its settings by key, or why they are not known.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = None if keys is None else names(keys)

        async def ask(
            node: Node, keys: Sequence[ConfigResource]
        ) -> dict[ConfigResource, dict[str, ConfigEntry] | TrionetError]:
            answer: DescribeConfigsResponse = await self._calls.client.request(
                node,
                DescribeConfigsRequest(
                    resources=[
                        DescribeConfigsResource(
                            resource_type=key.type,
                            resource_name=key.name,
                            configuration_keys=wanted,
                        )
                        for key in keys
                    ],
                    include_synonyms=include_synonyms,
                    include_documentation=include_documentation,
                ),
                version_min=3 if include_documentation else 1,
            )
            return {
                ConfigResource(ConfigResourceType(each.resource_type), each.resource_name): failure(
                    each.error_code, each.resource_name, each.error_message
                )
                or {config.name: _entry(config) for config in each.configs}
                for each in answer.results
            }

        nodes = {ConfigResourceType.BROKER_LOGGER, ConfigResourceType.BROKER}
        place = self._at_their_brokers(self._calls.at_any, nodes)
        return await self._calls.each(items(resources, ConfigResource), place, ask)

    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Setting | Append | Subtract]],
        *,
        validate_only: bool = False,
    ) -> Results[ConfigResource, None]:
        """Change some settings, and leave the others (KIP-339).

        Args:
            changes: by resource and key the new value; None for the default again.
            validate_only: only look whether that could be done.

        Returns:
            By resource, None or why nothing of it was changed.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: settings may be changed.
        """
        changes = mapping(changes, ConfigResource, Mapping)

        async def ask(
            node: Node, keys: Sequence[ConfigResource]
        ) -> dict[ConfigResource, TrionetError | None]:
            answer: IncrementalAlterConfigsResponse = await self._calls.client.request(
                node,
                IncrementalAlterConfigsRequest(
                    resources=[
                        AlterConfigsResource(
                            resource_type=key.type,
                            resource_name=key.name,
                            configs=[_change(name, to) for name, to in changes[key].items()],
                        )
                        for key in keys
                    ],
                    validate_only=validate_only,
                ),
            )
            return {
                ConfigResource(ConfigResourceType(each.resource_type), each.resource_name): failure(
                    each.error_code, each.resource_name, each.error_message
                )
                for each in answer.responses
            }

        # Controllers take changes of brokers' settings, but do not tell where these are.
        nodes = {ConfigResourceType.BROKER_LOGGER}
        if not self._calls.nodes.of_controllers:
            nodes.add(ConfigResourceType.BROKER)
        place = self._at_their_brokers(self._calls.at_controller, nodes)
        return await self._calls.each(changes, place, ask, CONTROLLER_CODES)

    async def list_config_resources(
        self, types: Iterable[ConfigResourceType] | None = None
    ) -> list[ConfigResource]:
        """What has settings of its own (KIP-1142).

        Args:
            types: these only; None for all.

        Raises:
            TrionetError: the request failed; an UnsupportedVersionError, if the broker is older
                than Kafka 4.1 and other types than client metrics are wanted.
        """
        wanted = None if types is None else items(types, ConfigResourceType)

        def listed(answer: ListConfigResourcesResponse) -> list[ConfigResource]:
            check(answer.error_code, "the list of resources")
            return [
                ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
                for each in answer.config_resources
            ]

        body = ListConfigResourcesRequest(resource_types=[int(each) for each in wanted or ()])
        try:
            return await self._calls.ask_any(body, listed, version_min=1)
        except UnsupportedVersionError:
            if wanted != [ConfigResourceType.CLIENT_METRICS]:
                raise
        # Its first version knows nothing else (KIP-714).
        return await self._calls.ask_any(ListConfigResourcesRequest(), listed)

    def _at_their_brokers(
        self, others: Place[ConfigResource], nodes: Collection[ConfigResourceType]
    ) -> Place[ConfigResource]:
        """Resources of these types at the broker with that id, everything else elsewhere."""
        brokers: Place[ConfigResource] = self._calls.at_brokers(_broker_id)

        async def place(
            keys: Sequence[ConfigResource],
        ) -> dict[ConfigResource, Node | TrionetError]:
            # A broker without an id is the default of all of them.
            default = ConfigResource(ConfigResourceType.BROKER, "")
            own = [key for key in keys if key.type in nodes and key != default]
            rest = [key for key in keys if key not in own]
            return {**(await brokers(own)), **(await others(rest) if rest else {})}

        return place


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        ConfigSource(config.config_source),
        config.read_only,
        config.is_sensitive,
        ConfigType(config.config_type),
        tuple(
            ConfigSynonym(each.name, each.value, ConfigSource(each.source))
            for each in config.synonyms
        ),
        config.documentation or None,
    )


def _broker_id(resource: ConfigResource) -> int:
    """The broker that a resource is; ValueError for any other text."""
    try:
        return int(resource.name)
    except ValueError as error:
        raise ValueError(f"{resource.name!r} is no id of a broker") from error


def _change(name: str, to: Setting | Append | Subtract) -> AlterableConfig:
    if isinstance(to, (Append, Subtract)):
        operation = _APPEND if isinstance(to, Append) else _SUBTRACT
        return AlterableConfig(name=name, config_operation=operation, value=to.value)
    operation = _DELETE if to is None else _SET
    return AlterableConfig(name=name, config_operation=operation, value=setting_text(to))
