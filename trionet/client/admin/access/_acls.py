"""Access control entries: who may do what with which resource."""

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
from ..._node import Node
from ..calls._argument_checks import items
from ..calls._conversions import AdminCalls, check, failure
from ..calls._nodes import CONTROLLER_CODES
from ..calls._results import Results
from ..calls._wire_enum import WireEnum
from ._acl_operation import AclOperation


class ResourceType(WireEnum):
    """What access is about, by Kafka's numbers."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(WireEnum):
    """How the name of a resource is meant (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    """In a filter: however it is meant."""

    MATCH = 2
    """In a filter: whatever holds for a resource of this name."""

    LITERAL = 3
    """The name itself; ``*`` is every name."""

    PREFIXED = 4
    """All names that begin with it."""


class AclPermission(WireEnum):
    """What an entry says."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@attrs.frozen(kw_only=True)
class AclBinding:
    """An entry: somebody may, or may not, do something.

    Attributes:
        resource_type: what it is about.
        resource_name: its name, ``*`` for all; ``kafka-cluster`` for the cluster.
        pattern_type: how the name is meant.
        principal: who, such as ``User:alice``.
        host: from where; ``*`` for anywhere.
        operation: does what.
        permission: may, or may not.
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
    """Which entries are meant; without anything, all.

    Attributes:
        resource_type: about what.
        resource_name: of which name; None for any.
        pattern_type: how names are meant.
        principal: of whom; None for anybody.
        host: from where; None for anywhere.
        operation: doing what.
        permission: may, or may not.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY


class AclCalls(AdminCalls):
    """Calls about access control entries."""

    async def create_acls(self, bindings: Iterable[AclBinding]) -> Results[AclBinding, None]:
        """Make entries; one that is there already stays.

        Args:
            bindings: the entries.

        Returns:
            By entry, None or why it was not made.

        Raises:
            TrionetError: the request as a whole failed; SECURITY_DISABLED without an authorizer
                is told of each entry.

        Cancellation: entries may be made.
        """

        async def ask(
            node: Node, keys: Sequence[AclBinding]
        ) -> dict[AclBinding, TrionetError | None]:
            answer: CreateAclsResponse = await self._calls.client.request(
                node, CreateAclsRequest(creations=[_creation(key) for key in keys])
            )
            return {
                key: failure(each.error_code, str(key), each.error_message)
                for key, each in zip(keys, answer.results, strict=False)
            }

        return await self._calls.each(
            items(bindings, AclBinding), self._calls.at_controller, ask, CONTROLLER_CODES
        )

    async def describe_acls(self, which: AclFilter | None = None) -> list[AclBinding]:
        """Read entries.

        Args:
            which: None for all.

        Raises:
            ApiError: SECURITY_DISABLED: there is no authorizer.
            TrionetError: the request failed.
        """
        [which] = items([AclFilter() if which is None else which], AclFilter)

        def described(answer: DescribeAclsResponse) -> list[AclBinding]:
            check(answer.error_code, "the entries", answer.error_message)
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
                for resource in answer.resources
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
        return await self._calls.ask_any(body, described, version_min=1)

    async def delete_acls(
        self, filters: Iterable[AclFilter]
    ) -> Results[AclFilter, Results[AclBinding, None]]:
        """Delete entries.

        Args:
            filters: which.

        Returns:
            By filter, the entries that it met, each with None or why it was not deleted; or why
            the filter could not be applied.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: entries may be deleted.
        """

        async def ask(
            node: Node, keys: Sequence[AclFilter]
        ) -> dict[AclFilter, Results[AclBinding, None] | TrionetError]:
            answer: DeleteAclsResponse = await self._calls.client.request(
                node, DeleteAclsRequest(filters=[_filter(key) for key in keys]), version_min=1
            )
            return {
                key: _deleted(key, each)
                for key, each in zip(keys, answer.filter_results, strict=False)
            }

        return await self._calls.each(
            items(filters, AclFilter), self._calls.at_controller, ask, CONTROLLER_CODES
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
