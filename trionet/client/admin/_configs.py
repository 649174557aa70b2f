"""Configurations of topics, brokers, groups and client metrics, and broker log levels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from ...errors import TrionetError, UnsupportedVersionError
from ...protocol.messages import (
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from .._argument_checks import items, mapping, names
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import Setting, WireEnum, failure, setting_text
from ._nodes import Place


class ConfigResourceType(WireEnum):
    """The type of a resource that has a configuration; the values are Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(WireEnum):
    """Where a config's value is set."""

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
    """The type of a config's value."""

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
    """A resource that has a configuration.

    Attributes:
        type: the resource's type.
        name: the name of the topic, group or client metrics subscription; the broker id as a
            string, or an empty string for the cluster-wide default of all brokers.
    """

    type: ConfigResourceType
    name: str


@attrs.frozen
class ConfigSynonym:
    """A config whose value another config falls back to.

    Attributes:
        name: the key.
        value: the value.
        source: where the value is set.
    """

    name: str
    value: str | None
    source: ConfigSource


@attrs.frozen
class ConfigEntry:
    """A config of a resource.

    Attributes:
        name: the key.
        value: the value; None for a secret, or if no value is set.
        source: where the value is set.
        is_read_only: whether the value cannot be changed while the broker is running.
        is_sensitive: whether the value is a secret.
        type: the type of the value.
        synonyms: the configs from which the value is taken, in order of precedence; empty unless
            requested.
        documentation: the documentation of the config; None unless requested and available.
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
        """Whether the value is the built-in default rather than one set explicitly."""
        return self.source is ConfigSource.DEFAULT


@attrs.frozen
class Append:
    """A change that appends items to a list config.

    Attributes:
        value: the items to append, separated by commas.
    """

    value: str


@attrs.frozen
class Subtract:
    """A change that removes items from a list config.

    Attributes:
        value: the items to remove, separated by commas.
    """

    value: str


_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3


class ConfigCalls(AdminCalls):
    """Admin calls for configurations."""

    async def describe(
        self,
        resources: Iterable[ConfigResource],
        *,
        keys: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Return the configurations of resources.

        Args:
            resources: the resources.
            keys: the keys to read; None for all.
            include_synonyms: whether to include the configs from which values are taken.
            include_documentation: whether to include the documentation.

        Returns:
            For each resource, the configs keyed by name, or the error.

        Raises:
            TrionetError: the request as a whole failed.
        """
        wanted = None if keys is None else names(keys)

        async def send(
            node: Node, keys: Sequence[ConfigResource]
        ) -> Outcomes[ConfigResource, dict[str, ConfigEntry]]:
            body = describe_configs.DescribeConfigsRequest(
                resources=[
                    describe_configs.DescribeConfigsResource(
                        resource_type=key.type, resource_name=key.name, configuration_keys=wanted
                    )
                    for key in keys
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            response: describe_configs.DescribeConfigsResponse = await self._request(
                node, body, version_min=3 if include_documentation else 1
            )
            return {
                _resource(each): failure(each, each.resource_name)
                or {config.name: _entry(config) for config in each.configs}
                for each in response.results
            }

        place = self._at_their_brokers(
            self._nodes.at_any, {ConfigResourceType.BROKER_LOGGER, ConfigResourceType.BROKER}
        )
        return await self._calls.for_each(items(resources, ConfigResource), place, send)

    async def alter(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Setting | Append | Subtract]],
        *,
        validate_only: bool = False,
    ) -> Results[ConfigResource, None]:
        """Change some configs, leaving all others unchanged (KIP-339).

        Args:
            changes: for each resource, the new value of each key; None resets a key to its default.
            validate_only: whether to validate the changes without making them.

        Returns:
            For each resource, None on success or the error, in which case none of its configs
            changed.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: configs may have been changed.
        """
        changes = mapping(changes, ConfigResource, Mapping)

        async def send(
            node: Node, keys: Sequence[ConfigResource]
        ) -> Outcomes[ConfigResource, None]:
            body = incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[
                    incremental_alter_configs.AlterConfigsResource(
                        resource_type=key.type,
                        resource_name=key.name,
                        configs=[_change(name, to) for name, to in changes[key].items()],
                    )
                    for key in keys
                ],
                validate_only=validate_only,
            )
            response: incremental_alter_configs.IncrementalAlterConfigsResponse = (
                await self._request(node, body)
            )
            return {
                _resource(each): failure(each, each.resource_name) for each in response.responses
            }

        # Controllers accept changes of brokers' configs, but do not know the brokers' addresses.
        types = {ConfigResourceType.BROKER_LOGGER}
        if not self._nodes.of_controllers:
            types.add(ConfigResourceType.BROKER)
        place = self._at_their_brokers(self._nodes.at_controller, types)
        return await self._calls.for_each(changes, place, send)

    async def list_resources(
        self, types: Iterable[ConfigResourceType] | None = None
    ) -> list[ConfigResource]:
        """Return the resources that have a configuration (KIP-1142).

        Args:
            types: the resource types; None for all.

        Raises:
            TrionetError: the request failed; UnsupportedVersionError if the broker is older than
                Kafka 4.1, unless only client metrics are requested.
        """
        wanted = None if types is None else items(types, ConfigResourceType)
        body = list_config_resources.ListConfigResourcesRequest(
            resource_types=[int(each) for each in wanted or ()]
        )
        about = "the list of resources"
        response: list_config_resources.ListConfigResourcesResponse
        try:
            response = await self._calls.call_any(body, about, version_min=1)
        except UnsupportedVersionError:
            if wanted != [ConfigResourceType.CLIENT_METRICS]:
                raise
        else:
            return list(map(_resource, response.config_resources))
        # Version 0 lists client metrics only (KIP-714).
        body = list_config_resources.ListConfigResourcesRequest()
        response = await self._calls.call_any(body, about)
        return list(map(_resource, response.config_resources))

    def _at_their_brokers(
        self, others: Place[ConfigResource], types: Collection[ConfigResourceType]
    ) -> Place[ConfigResource]:
        """Return the place of the named broker for these types, and ``others`` for all others."""
        brokers = self._nodes.at_brokers(_broker_id)

        async def find(
            keys: Sequence[ConfigResource],
        ) -> dict[ConfigResource, Node | TrionetError]:
            # A broker with an empty name stands for the default of all brokers.
            default = ConfigResource(ConfigResourceType.BROKER, "")
            own: list[ConfigResource] = []
            rest: list[ConfigResource] = []
            for key in keys:
                (own if key.type in types and key != default else rest).append(key)
            return {**(await brokers.find(own)), **(await others.find(rest) if rest else {})}

        return Place(find, others.retried)


def _resource(
    named: describe_configs.DescribeConfigsResult
    | incremental_alter_configs.AlterConfigsResourceResponse
    | list_config_resources.ConfigResource,
) -> ConfigResource:
    return ConfigResource(ConfigResourceType(named.resource_type), named.resource_name)


def _entry(config: describe_configs.DescribeConfigsResourceResult) -> ConfigEntry:
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
    """Parse a resource's name as a broker id.

    Raises:
        ValueError: the name is not a number.
    """
    try:
        return int(resource.name)
    except ValueError as error:
        raise ValueError(f"invalid broker id {resource.name!r}: expected an integer") from error


def _change(
    name: str, to: Setting | Append | Subtract
) -> incremental_alter_configs.AlterableConfig:
    if isinstance(to, Append | Subtract):
        operation = _APPEND if isinstance(to, Append) else _SUBTRACT
        to = to.value
    else:
        operation = _DELETE if to is None else _SET
    return incremental_alter_configs.AlterableConfig(
        name=name, config_operation=operation, value=setting_text(to)
    )
