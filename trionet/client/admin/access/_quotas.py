"""How much clients may use: quotas of users, client ids and addresses (KIP-546)."""

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
from ..._node import Node
from ..calls._argument_checks import items, mapping
from ..calls._conversions import AdminCalls, check, failure
from ..calls._nodes import CONTROLLER_CODES
from ..calls._results import Results


def _parts(parts: Mapping[str, str | None]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(parts.items()))


@attrs.frozen
class QuotaEntity:
    """Whom a quota is for: ``QuotaEntity({"user": "alice", "client-id": None})``.

    Attributes:
        parts: by type (``user``, ``client-id``, ``ip``) the name; None for whoever has no quota of
            his own.
    """

    parts: tuple[tuple[str, str | None], ...] = attrs.field(converter=_parts)


class QuotaMatch(IntEnum):
    """Which names are meant."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@attrs.frozen
class QuotaFilter:
    """Which entities are meant, by one of their parts.

    Attributes:
        type: of the part: ``user``, ``client-id`` or ``ip``.
        name: for an exact match.
        match: by the name if there is one, else any.
    """

    type: str
    name: str | None = None
    match: QuotaMatch = attrs.field()

    @match.default
    def _match(self) -> QuotaMatch:
        return QuotaMatch.ANY if self.name is None else QuotaMatch.EXACT


class QuotaCalls(AdminCalls):
    """Calls about quotas."""

    async def describe_client_quotas(
        self, filters: Iterable[QuotaFilter] = (), *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Read quotas.

        Args:
            filters: all must hold; none for all quotas.
            strict: entities with other parts than those of the filters are left out.

        Raises:
            TrionetError: the request failed.
        """

        def described(
            answer: DescribeClientQuotasResponse,
        ) -> dict[QuotaEntity, dict[str, float]]:
            check(answer.error_code, "the quotas", answer.error_message)
            return {
                QuotaEntity({part.entity_type: part.entity_name for part in each.entity}): {
                    value.key: value.value for value in each.values
                }
                for each in answer.entries or ()
            }

        components = [
            ComponentData(entity_type=each.type, match_type=each.match, match=each.name)
            for each in items(filters, QuotaFilter)
        ]
        body = DescribeClientQuotasRequest(components=components, strict=strict)
        return await self._calls.ask_any(body, described)

    async def alter_client_quotas(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
    ) -> Results[QuotaEntity, None]:
        """Set and remove quotas; those that are not named stay.

        Args:
            quotas: by entity and key, such as ``producer_byte_rate``, the value; None for no more.
            validate_only: only look whether that could be done.

        Returns:
            By entity, None or why nothing of it was changed.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: quotas may be changed.
        """
        quotas = mapping(quotas, QuotaEntity, Mapping)

        async def ask(
            node: Node, keys: Sequence[QuotaEntity]
        ) -> dict[QuotaEntity, TrionetError | None]:
            answer: altering.AlterClientQuotasResponse = await self._calls.client.request(
                node,
                altering.AlterClientQuotasRequest(
                    entries=[_entry(key, quotas[key]) for key in keys], validate_only=validate_only
                ),
            )
            found: dict[QuotaEntity, TrionetError | None] = {}
            for each in answer.entries:
                key = QuotaEntity({part.entity_type: part.entity_name for part in each.entity})
                found[key] = failure(each.error_code, str(key), each.error_message)
            return found

        return await self._calls.each(quotas, self._calls.at_controller, ask, CONTROLLER_CODES)


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
