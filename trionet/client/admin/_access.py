"""What clients may do: access control lists, and client quotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

import attrs

from ...protocol.messages import (
    alter_client_quotas,
    create_acls,
    delete_acls,
    describe_acls,
    describe_client_quotas,
)
from .._argument_checks import items, mapping
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import AclOperation, WireEnum, failure

T = TypeVar("T")


class ResourceType(WireEnum):
    """The type of a resource; the values are Kafka's codes."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(WireEnum):
    """How the name of a resource is matched (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    """In a filter: any pattern type."""

    MATCH = 2
    """In a filter: all bindings that apply to a resource with this name."""

    LITERAL = 3
    """Exactly this name; ``*`` matches every name."""

    PREFIXED = 4
    """All names with this prefix."""


class AclPermission(WireEnum):
    """Whether an operation is allowed or denied."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@attrs.frozen(kw_only=True)
class AclBinding:
    """An access control entry on a resource.

    Attributes:
        resource_type: the type of the resource.
        resource_name: the name of the resource; ``*`` for all; ``kafka-cluster`` for the cluster.
        pattern_type: how the name is matched.
        principal: the principal, such as ``User:alice``.
        host: the host the principal connects from; ``*`` for any.
        operation: the operation.
        permission: whether it is allowed or denied.
    """

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType = PatternType.LITERAL
    principal: str
    host: str = "*"
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW


@attrs.frozen(kw_only=True)
class AclFilter:
    """A filter for access control entries; the default matches all of them.

    Attributes:
        resource_type: the type of the resource.
        resource_name: the name of the resource; None for any.
        pattern_type: how the name is matched.
        principal: the principal; None for any.
        host: the host; None for any.
        operation: the operation.
        permission: whether it is allowed or denied.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY


class AclCalls(AdminCalls):
    """Admin calls for access control lists."""

    async def create(self, bindings: Iterable[AclBinding]) -> Results[AclBinding, None]:
        """Create access control entries; existing entries are kept.

        Args:
            bindings: the entries.

        Returns:
            For each entry, None on success or the error, such as SECURITY_DISABLED if the cluster
            has no authorizer.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: entries may have been created.
        """

        async def send(node: Node, keys: Sequence[AclBinding]) -> Outcomes[AclBinding, None]:
            body = create_acls.CreateAclsRequest(creations=[_creation(key) for key in keys])
            response: create_acls.CreateAclsResponse = await self._request(node, body)
            results = zip(keys, response.results, strict=False)
            return {key: failure(each, key) for key, each in results}

        bindings = items(bindings, AclBinding)
        return await self._calls.for_each(bindings, self._nodes.at_controller, send)

    async def describe(self, which: AclFilter | None = None) -> list[AclBinding]:
        """Return the access control entries that match a filter.

        Args:
            which: the filter; None for all entries.

        Raises:
            ApiError: SECURITY_DISABLED if the broker has no authorizer.
            TrionetError: the request failed.
        """
        [which] = items([AclFilter() if which is None else which], AclFilter)
        body = _filter(describe_acls.DescribeAclsRequest, which)
        response: describe_acls.DescribeAclsResponse = await self._calls.call_any(
            body, "the ACLs", version_min=1
        )
        return [
            _binding(resource, each) for resource in response.resources for each in resource.acls
        ]

    async def delete(
        self, filters: Iterable[AclFilter]
    ) -> Results[AclFilter, Results[AclBinding, None]]:
        """Delete the access control entries that match at least one of the filters.

        Args:
            filters: the filters.

        Returns:
            For each filter, its error, or a mapping from each matching entry to None on success or
            the entry's error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: entries may have been deleted.
        """

        async def send(
            node: Node, keys: Sequence[AclFilter]
        ) -> Outcomes[AclFilter, Results[AclBinding, None]]:
            wanted = [_filter(delete_acls.DeleteAclsFilter, key) for key in keys]
            response: delete_acls.DeleteAclsResponse = await self._request(
                node, delete_acls.DeleteAclsRequest(filters=wanted), version_min=1
            )
            results = zip(keys, response.filter_results, strict=False)
            return {
                key: failure(each, key) or _deleted(each.matching_acls) for key, each in results
            }

        filters = items(filters, AclFilter)
        return await self._calls.for_each(filters, self._nodes.at_controller, send)


def _creation(binding: AclBinding) -> create_acls.AclCreation:
    return create_acls.AclCreation(
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        resource_pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


def _filter(message: Callable[..., T], which: AclFilter) -> T:
    """Return a filter as a message; the messages that describe and delete have the same fields."""
    return message(
        resource_type_filter=which.resource_type,
        resource_name_filter=which.resource_name,
        pattern_type_filter=which.pattern_type,
        principal_filter=which.principal,
        host_filter=which.host,
        operation=which.operation,
        permission_type=which.permission,
    )


def _deleted(matching: Iterable[delete_acls.DeleteAclsMatchingAcl]) -> Results[AclBinding, None]:
    found = ((_binding(each, each), each) for each in matching)
    return Results({binding: failure(each, binding) for binding, each in found})


def _binding(
    resource: describe_acls.DescribeAclsResource | delete_acls.DeleteAclsMatchingAcl,
    acl: describe_acls.AclDescription | delete_acls.DeleteAclsMatchingAcl,
) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType(resource.resource_type),
        resource_name=resource.resource_name,
        pattern_type=PatternType(resource.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=AclOperation(acl.operation),
        permission=AclPermission(acl.permission_type),
    )


def _parts(parts: Mapping[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(parts.items()))


@attrs.frozen
class QuotaEntity:
    """The entity a quota applies to: ``QuotaEntity({"user": "alice", "client-id": None})``.

    Attributes:
        parts: the name for each entity type (``user``, ``client-id``, ``ip``); the name None stands
            for the default, which applies to names without a quota of their own.
    """

    parts: tuple[tuple[str, str | None], ...] = attrs.field(converter=_parts)


class QuotaMatch(IntEnum):
    """How a filter matches names."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@attrs.frozen
class QuotaFilter:
    """A filter for quota entities by one of their parts.

    Attributes:
        type: the type of the part: ``user``, ``client-id`` or ``ip``.
        name: the name to match exactly.
        match: how to match; by default EXACT with a name, and ANY without.
    """

    type: str
    name: str | None = None
    match: QuotaMatch = attrs.field()

    @match.default
    def _match(self) -> QuotaMatch:
        return QuotaMatch.ANY if self.name is None else QuotaMatch.EXACT


class QuotaCalls(AdminCalls):
    """Admin calls for client quotas."""

    async def describe(
        self, filters: Iterable[QuotaFilter] = (), *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas of entities.

        Args:
            filters: filters that must all match; empty for all quotas.
            strict: whether to exclude entities with parts whose type no filter names.

        Raises:
            TrionetError: the request failed.
        """
        components = [
            describe_client_quotas.ComponentData(
                entity_type=each.type, match_type=each.match, match=each.name
            )
            for each in items(filters, QuotaFilter)
        ]
        body = describe_client_quotas.DescribeClientQuotasRequest(
            components=components, strict=strict
        )
        response: describe_client_quotas.DescribeClientQuotasResponse = await self._calls.call_any(
            body, "the quotas"
        )
        return {
            _entity(each): {value.key: value.value for value in each.values}
            for each in response.entries or ()
        }

    async def alter(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
    ) -> Results[QuotaEntity, None]:
        """Set and remove quotas, leaving all others unchanged.

        Args:
            quotas: for each entity, the value of each quota key, such as ``producer_byte_rate``;
                None removes the quota.
            validate_only: whether to validate the changes without making them.

        Returns:
            For each entity, None on success or the error, in which case none of its quotas changed.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: quotas may have been changed.
        """
        quotas = mapping(quotas, QuotaEntity, Mapping)

        async def send(node: Node, keys: Sequence[QuotaEntity]) -> Outcomes[QuotaEntity, None]:
            entries = [_entry(key, quotas[key]) for key in keys]
            response: alter_client_quotas.AlterClientQuotasResponse = await self._request(
                node,
                alter_client_quotas.AlterClientQuotasRequest(
                    entries=entries, validate_only=validate_only
                ),
            )
            return {(key := _entity(each)): failure(each, key) for each in response.entries}

        return await self._calls.for_each(quotas, self._nodes.at_controller, send)


def _entity(
    entry: describe_client_quotas.EntryData | alter_client_quotas.ResponseEntryData,
) -> QuotaEntity:
    return QuotaEntity({part.entity_type: part.entity_name for part in entry.entity})


def _entry(
    entity: QuotaEntity, values: Mapping[str, float | None]
) -> alter_client_quotas.RequestEntryData:
    return alter_client_quotas.RequestEntryData(
        entity=[
            alter_client_quotas.RequestEntityData(entity_type=type, entity_name=name)
            for type, name in entity.parts
        ],
        ops=[
            alter_client_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in values.items()
        ],
    )
