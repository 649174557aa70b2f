"""List, describe and delete groups of all types, and remove members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
import trio

from ....errors import ApiError, TrionetError, UnsupportedVersionError
from ....protocol import error_codes
from ....protocol.messages import consumer_group_describe as consumer_groups
from ....protocol.messages import describe_groups as classic_groups
from ....protocol.messages import share_group_describe as share_groups
from ....protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ....protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ....protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..._argument_checks import names
from ..._node import Node
from ..calls._calls import AdminCalls, Lookup, Results, SendTo
from ..calls._conversions import check, failure
from ..calls._nodes import COORDINATOR_CODES
from ._group_descriptions import (
    GroupDescription,
    describing,
    of_classic_group,
    of_consumer_group,
    of_share_group,
)

_BY_MEMBERS_VERSION = 3  # KIP-345


@attrs.frozen
class GroupListing:
    """A group in a listing.

    Attributes:
        id: the group id.
        type: ``classic``, ``consumer``, ``share`` or ``streams``; empty if not reported.
        state: Kafka's name of the state, such as ``Stable``; empty if not reported.
        protocol_type: the members' protocol, such as ``consumer``.
    """

    id: str
    type: str
    state: str
    protocol_type: str


class GroupCalls(AdminCalls):
    """Calls for groups."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> dict[str, GroupListing]:
        """Return the groups that the caller may describe, by id.

        Args:
            states: only groups in these states, such as ``Empty``; empty for all.
            types: only groups of these types, such as ``share``; empty for all.

        Raises:
            TrionetError: a broker could not be reached; the listing would be incomplete.
        """
        body = ListGroupsRequest(states_filter=names(states), types_filter=names(types))
        version_min = 5 if body.types_filter else 4 if body.states_filter else 0

        async def send(
            node: Node, keys: Sequence[int]
        ) -> dict[int, dict[str, GroupListing] | TrionetError]:
            response: ListGroupsResponse = await self._calls.client.request(
                node, body, version_min=version_min
            )
            check(response.error_code, f"the groups of {node}")
            groups: dict[str, GroupListing] = {
                each.group_id: GroupListing(
                    each.group_id, each.group_type, each.group_state, each.protocol_type
                )
                for each in response.groups
            }
            return dict.fromkeys(keys, groups)

        brokers = await self._calls.retry(self._calls.nodes.all)
        lookup = self._calls.at_themselves
        found = (await self._calls.for_each(brokers, lookup, send, COORDINATOR_CODES)).checked()
        return {id: group for groups in found.values() for id, group in groups.items()}

    async def describe_groups(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, GroupDescription]:
        """Describe groups of type classic or consumer (KIP-848).

        Args:
            groups: group ids.
            include_operations: whether to include the operations permitted to the caller.

        Returns:
            The group or the error by id, such as GROUP_ID_NOT_FOUND.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def send(
            node: Node, keys: Sequence[str]
        ) -> dict[str, GroupDescription | TrionetError]:
            found = await self._consumer_groups(node, keys, include_operations)
            left = [key for key in keys if key not in found]
            if left:
                found.update(await self._classic_groups(node, left, include_operations))
            return found

        return await self._calls.for_each(
            names(groups), self._calls.at_groups, send, COORDINATOR_CODES
        )

    async def _consumer_groups(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> dict[str, GroupDescription | TrionetError]:
        """Describe the groups of type consumer, and omit the others."""
        send: SendTo[str, GroupDescription] = describing(
            self._calls,
            consumer_groups.ConsumerGroupDescribeRequest,
            of_consumer_group,
            include_operations=include_operations,
        )
        await trio.lowlevel.checkpoint()
        try:
            found = await send(node, keys)
        except UnsupportedVersionError:
            return {}
        others = (error_codes.GROUP_ID_NOT_FOUND, error_codes.UNSUPPORTED_VERSION)
        return {
            key: each
            for key, each in found.items()
            if not (isinstance(each, ApiError) and each.error_code in others)
        }

    async def _classic_groups(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> dict[str, GroupDescription | TrionetError]:
        response: classic_groups.DescribeGroupsResponse = await self._calls.client.request(
            node,
            classic_groups.DescribeGroupsRequest(
                groups=list(keys), include_authorized_operations=include_operations
            ),
            version_min=3 if include_operations else 0,
        )
        return {
            each.group_id: of_classic_group(each, node, include_operations)
            for each in response.groups
        }

    async def describe_share_groups(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, GroupDescription]:
        """Describe share groups (KIP-932).

        Args:
            groups: group ids.
            include_operations: whether to include the operations permitted to the caller.

        Returns:
            The group or the error by id.

        Raises:
            TrionetError: the request as a whole failed.
        """
        send: SendTo[str, GroupDescription] = describing(
            self._calls,
            share_groups.ShareGroupDescribeRequest,
            of_share_group,
            include_operations=include_operations,
        )
        return await self._calls.for_each(
            names(groups), self._calls.at_groups, send, COORDINATOR_CODES
        )

    async def delete_groups(self, groups: Iterable[str]) -> Results[str, None]:
        """Delete groups of any type, with their offsets; they must have no members.

        Args:
            groups: group ids.

        Returns:
            None or the error by id, such as NON_EMPTY_GROUP.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: groups may have been deleted.
        """

        async def send(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            response: DeleteGroupsResponse = await self._calls.client.request(
                node, DeleteGroupsRequest(groups_names=list(keys))
            )
            return {
                each.group_id: failure(each.error_code, f"group {each.group_id}")
                for each in response.results
            }

        return await self._calls.for_each(
            names(groups), self._calls.at_groups, send, COORDINATOR_CODES
        )

    async def remove_members(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str = "an administrator removed the member",
    ) -> Results[str, None]:
        """Remove members from a classic group, which then rebalances at once.

        A member that is still running joins again.

        Args:
            group: the group id.
            instance_ids: the ``group.instance.id`` of static members; None for all members.
            reason: the reason to show in the broker's log.

        Returns:
            None or the error by instance id, or by member id for dynamic members.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: members may have been removed.
        """
        if instance_ids is not None:
            members = {each: MemberIdentity(group_instance_id=each) for each in names(instance_ids)}
        else:
            described = (await self.describe_groups([group])).checked()[group]
            members = {
                each.instance_id or each.id: MemberIdentity(
                    member_id="" if each.instance_id else each.id,
                    group_instance_id=each.instance_id,
                )
                for each in described.members
            }
        for member in members.values():
            member.reason = reason

        async def send(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            response: LeaveGroupResponse = await self._calls.client.request(
                node,
                LeaveGroupRequest(group_id=group, members=[members[key] for key in keys]),
                version_min=_BY_MEMBERS_VERSION,
            )
            check(response.error_code, f"group {group}")
            found: dict[str, TrionetError | None] = {}
            for each in response.members:
                key = each.group_instance_id or each.member_id
                found[key] = failure(each.error_code, f"member {key}")
            return found

        lookup: Lookup[str] = self._calls.at_group(group)
        return await self._calls.for_each(members, lookup, send, COORDINATOR_CODES)
