"""Access control lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ....errors import TrionetError
from ....protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ....protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ....protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ..._api_errors import api_error
from ..._argument_checks import items
from ...network._cluster import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import check, failure
from ..calls._enums import AclOperation, WireEnum
from ..calls._nodes import CONTROLLER_CODES


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

        async def send(
            node: Node, keys: Sequence[AclBinding]
        ) -> dict[AclBinding, TrionetError | None]:
            response: CreateAclsResponse = await self._calls.client.request(
                node, CreateAclsRequest(creations=[_creation(key) for key in keys])
            )
            return {
                key: failure(each.error_code, str(key), each.error_message)
                for key, each in zip(keys, response.results, strict=False)
            }

        return await self._calls.for_each(
            items(bindings, AclBinding), self._calls.at_controller, send, CONTROLLER_CODES
        )

    async def describe(self, which: AclFilter | None = None) -> list[AclBinding]:
        """Return the access control entries that match a filter.

        Args:
            which: the filter; None for all entries.

        Raises:
            ApiError: SECURITY_DISABLED if the broker has no authorizer.
            TrionetError: the request failed.
        """
        [which] = items([AclFilter() if which is None else which], AclFilter)

        def described(response: DescribeAclsResponse) -> list[AclBinding]:
            check(response.error_code, "the ACLs", response.error_message)
            return [
                AclBinding(
                    resource_type=ResourceType(resource.resource_type),
                    resource_name=resource.resource_name,
                    pattern_type=PatternType(resource.pattern_type),
                    principal=each.principal,
                    host=each.host,
                    operation=AclOperation(each.operation),
                    permission=AclPermission(each.permission_type),
                )
                for resource in response.resources
                for each in resource.acls
            ]

        body = DescribeAclsRequest(
            resource_type_filter=which.resource_type,
            resource_name_filter=which.resource_name,
            pattern_type_filter=which.pattern_type,
            principal_filter=which.principal,
            host_filter=which.host,
            operation=which.operation,
            permission_type=which.permission,
        )
        return await self._calls.call_any(body, described, version_min=1)

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
        ) -> dict[AclFilter, Results[AclBinding, None] | TrionetError]:
            response: DeleteAclsResponse = await self._calls.client.request(
                node, DeleteAclsRequest(filters=[_filter(key) for key in keys]), version_min=1
            )
            return {
                key: _deleted(key, each)
                for key, each in zip(keys, response.filter_results, strict=False)
            }

        return await self._calls.for_each(
            items(filters, AclFilter), self._calls.at_controller, send, CONTROLLER_CODES
        )


def _creation(binding: AclBinding) -> AclCreation:
    return AclCreation(
        resource_type=binding.resource_type,
        resource_name=binding.resource_name,
        resource_pattern_type=binding.pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


def _filter(which: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=which.resource_type,
        resource_name_filter=which.resource_name,
        pattern_type_filter=which.pattern_type,
        principal_filter=which.principal,
        host_filter=which.host,
        operation=which.operation,
        permission_type=which.permission,
    )


def _deleted(
    which: AclFilter, result: DeleteAclsFilterResult
) -> Results[AclBinding, None] | TrionetError:
    if result.error_code:
        return api_error(result.error_code, str(which), result.error_message)
    deleted: Results[AclBinding, None] = Results()
    for each in result.matching_acls:
        binding = _binding(each)
        deleted[binding] = failure(each.error_code, str(binding), each.error_message)
    return deleted


def _binding(acl: DeleteAclsMatchingAcl) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=PatternType(acl.pattern_type),
        principal=acl.principal,
        host=acl.host,
        operation=AclOperation(acl.operation),
        permission=AclPermission(acl.permission_type),
    )
