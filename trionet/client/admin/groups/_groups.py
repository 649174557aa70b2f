"""Groups of every kind: listing, describing and deleting them, and removing members."""

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
from ..._node import Node
from ..calls._argument_checks import names
from ..calls._calls import Ask, Place
from ..calls._conversions import AdminCalls, check, failure
from ..calls._nodes import COORDINATOR_CODES
from ..calls._results import Results
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
    """A group in a list.

    Attributes:
        id: its name.
        type: ``classic``, ``consumer``, ``share`` or ``streams``; empty where it is not told.
        state: as Kafka names it, such as ``Stable``; empty where it is not told.
        protocol_type: what its members speak, such as ``consumer``.
    """

    id: str
    type: str
    state: str
    protocol_type: str


class GroupCalls(AdminCalls):
    """Calls about groups."""

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> dict[str, GroupListing]:
        """All groups that the caller may see, by name.

        Args:
            states: in these states only, such as ``Empty``; none for all.
            types: of these types only, such as ``share``; none for all.

        Raises:
            TrionetError: some broker could not be asked: a list that lacks its groups would be
                wrong.
        """
        body = ListGroupsRequest(states_filter=names(states), types_filter=names(types))
        version_min = 5 if body.types_filter else 4 if body.states_filter else 0

        async def ask(
            node: Node, keys: Sequence[int]
        ) -> dict[int, dict[str, GroupListing] | TrionetError]:
            answer: ListGroupsResponse = await self._calls.client.request(
                node, body, version_min=version_min
            )
            check(answer.error_code, f"the groups of {node}")
            groups: dict[str, GroupListing] = {
                each.group_id: GroupListing(
                    each.group_id, each.group_type, each.group_state, each.protocol_type
                )
                for each in answer.groups
            }
            return dict.fromkeys(keys, groups)

        brokers = await self._calls.once(self._calls.nodes.all)
        place = self._calls.at_themselves
        found = (await self._calls.each(brokers, place, ask, COORDINATOR_CODES)).checked()
        return {id: group for groups in found.values() for id, group in groups.items()}

    async def describe_groups(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, GroupDescription]:
        """Describe groups of consumers, of the classic kind and of KIP-848, and others that join.

        Args:
            groups: their names.
            include_operations: tell, too, what the caller may do with them.

        Returns:
            By name, the group or why it is not known, such as GROUP_ID_NOT_FOUND.

        Raises:
            TrionetError: the request as a whole failed.
        """

        async def ask(
            node: Node, keys: Sequence[str]
        ) -> dict[str, GroupDescription | TrionetError]:
            found = await self._consumer_groups(node, keys, include_operations)
            left = [key for key in keys if key not in found]
            if left:
                found.update(await self._classic_groups(node, left, include_operations))
            return found

        return await self._calls.each(names(groups), self._calls.at_groups, ask, COORDINATOR_CODES)

    async def _consumer_groups(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> dict[str, GroupDescription | TrionetError]:
        """Those that are of KIP-848; the others are left out."""
        ask: Ask[str, GroupDescription] = describing(
            self._calls,
            consumer_groups.ConsumerGroupDescribeRequest,
            of_consumer_group,
            include_operations=include_operations,
        )
        await trio.lowlevel.checkpoint()
        try:
            found = await ask(node, keys)
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
        answer: classic_groups.DescribeGroupsResponse = await self._calls.client.request(
            node,
            classic_groups.DescribeGroupsRequest(
                groups=list(keys), include_authorized_operations=include_operations
            ),
            version_min=3 if include_operations else 0,
        )
        return {
            each.group_id: of_classic_group(each, node, include_operations)
            for each in answer.groups
        }

    async def describe_share_groups(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, GroupDescription]:
        """Describe share groups (KIP-932).

        Args:
            groups: their names.
            include_operations: tell, too, what the caller may do with them.

        Returns:
            By name, the group or why it is not known.

        Raises:
            TrionetError: the request as a whole failed.
        """
        ask: Ask[str, GroupDescription] = describing(
            self._calls,
            share_groups.ShareGroupDescribeRequest,
            of_share_group,
            include_operations=include_operations,
        )
        return await self._calls.each(names(groups), self._calls.at_groups, ask, COORDINATOR_CODES)

    async def delete_groups(self, groups: Iterable[str]) -> Results[str, None]:
        """Delete groups of any kind, with their offsets; they must have no members.

        Args:
            groups: their names.

        Returns:
            By name, None or why it was not deleted, such as NON_EMPTY_GROUP.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: groups may be deleted.
        """

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            answer: DeleteGroupsResponse = await self._calls.client.request(
                node, DeleteGroupsRequest(groups_names=list(keys))
            )
            return {
                each.group_id: failure(each.error_code, f"group {each.group_id}")
                for each in answer.results
            }

        return await self._calls.each(names(groups), self._calls.at_groups, ask, COORDINATOR_CODES)

    async def remove_members(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str = "an administrator removed the member",
    ) -> Results[str, None]:
        """Remove members from a classic group; their partitions go to the others at once.

        A member that still runs joins again.

        Args:
            group: its name.
            instance_ids: of static members (``group.instance.id``); None for all members.
            reason: what the broker's log says.

        Returns:
            By instance id, or member id of members that have none, None or why it was not removed.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: members may be removed.
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

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            answer: LeaveGroupResponse = await self._calls.client.request(
                node,
                LeaveGroupRequest(group_id=group, members=[members[key] for key in keys]),
                version_min=_BY_MEMBERS_VERSION,
            )
            check(answer.error_code, f"group {group}")
            found: dict[str, TrionetError | None] = {}
            for each in answer.members:
                key = each.group_instance_id or each.member_id
                found[key] = failure(each.error_code, f"member {key}")
            return found

        place: Place[str] = self._calls.at_group(group)
        return await self._calls.each(members, place, ask, COORDINATOR_CODES)
