"""Client quotas of users, client ids and IP addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

import attrs

from ....errors import TrionetError
from ....protocol.messages import alter_client_quotas as altering
from ....protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ..._argument_checks import items, mapping
from ...network._cluster import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import check, failure
from ..calls._nodes import CONTROLLER_CODES


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

        def described(
            response: DescribeClientQuotasResponse,
        ) -> dict[QuotaEntity, dict[str, float]]:
            check(response.error_code, "the quotas", response.error_message)
            return {
                QuotaEntity({part.entity_type: part.entity_name for part in each.entity}): {
                    value.key: value.value for value in each.values
                }
                for each in response.entries or ()
            }

        components = [
            ComponentData(entity_type=each.type, match_type=each.match, match=each.name)
            for each in items(filters, QuotaFilter)
        ]
        body = DescribeClientQuotasRequest(components=components, strict=strict)
        return await self._calls.call_any(body, described)

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

        async def send(
            node: Node, keys: Sequence[QuotaEntity]
        ) -> dict[QuotaEntity, TrionetError | None]:
            response: altering.AlterClientQuotasResponse = await self._calls.client.request(
                node,
                altering.AlterClientQuotasRequest(
                    entries=[_entry(key, quotas[key]) for key in keys], validate_only=validate_only
                ),
            )
            found: dict[QuotaEntity, TrionetError | None] = {}
            for each in response.entries:
                key = QuotaEntity({part.entity_type: part.entity_name for part in each.entity})
                found[key] = failure(each.error_code, str(key), each.error_message)
            return found

        return await self._calls.for_each(quotas, self._calls.at_controller, send, CONTROLLER_CODES)


def _entry(entity: QuotaEntity, values: Mapping[str, float | None]) -> altering.RequestEntryData:
    return altering.RequestEntryData(
        entity=[
            altering.RequestEntityData(entity_type=type, entity_name=name)
            for type, name in entity.parts
        ],
        ops=[
            altering.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in values.items()
        ],
    )
