"""The admin client (Kafka: Admin).

Calls are grouped by subject: ``admin.topics.create(...)``, ``admin.groups.list()``. Kafka's own
Admin is one flat interface of some seventy methods. Both are useful: groups make calls easy to
find, and the flat names are the ones documented for Kafka. Each call is therefore defined once, in
its group, and :class:`Admin` also exposes it under Kafka's flat name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, cast, final

import trio

from ...net._network import SYSTEM, Network
from ...protocol._wire import Message
from .._client_metrics import ClientStatistics
from .._not_copied import NotCopied
from ..config._keywords import AdminKeywords
from ..network._cluster import Node
from ..network._open_client import until_connected
from ..security._settings import TokenProvider
from ._access import AclCalls, QuotaCalls
from ._calls import AdminCalls, AdminSettings, Calls, admin_settings, open_calls
from ._cluster import ClusterCalls, FeatureCalls, LogDirCalls, QuorumCalls
from ._configs import ConfigCalls
from ._credentials import DelegationTokenCalls, ScramCredentialCalls
from ._groups import GroupCalls
from ._partitions import PartitionCalls
from ._share_groups import ShareGroupCalls
from ._streams_groups import StreamsGroupCalls
from ._topics import TopicCalls
from ._transactions import TransactionCalls

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=AdminCalls)


def _flat(
    group: str, call: Callable[Concatenate[C, P], Awaitable[R]]
) -> Callable[Concatenate[Admin, P], Coroutine[Any, Any, R]]:
    """Expose a group's call as a method of :class:`Admin`, with its signature and docstring."""

    @wraps(call)
    async def method(self: Admin, *args: P.args, **kwargs: P.kwargs) -> R:
        return await call(getattr(self, group), *args, **kwargs)

    # The cast replaces the type of `wraps`, which mypy does not treat as a plain function.
    return cast("Callable[Concatenate[Admin, P], Coroutine[Any, Any, R]]", method)


@final
class Admin(NotCopied):
    """An admin client, opened by :func:`._admin.open_admin`.

    Any number of tasks may use an admin client concurrently. A call retries until it succeeds or
    ``default.api.timeout.ms`` has passed. A call about several items returns :class:`.Results`,
    with a value or error for each item; it raises only errors that concern all items.

    The brokers may carry out a call even if it is cancelled.

    The class has more than 25 methods, since those below :meth:`request` are the same calls under
    Kafka's flat names.

    Attributes:
        topics: creation, deletion, listing and description of topics, and new partitions.
        partitions: offsets, record deletion, leader elections and reassignments.
        configs: configurations of topics, brokers, groups and client metrics.
        groups: groups and their committed offsets.
        share_groups: share groups and their start offsets.
        streams_groups: streams groups.
        transactions: producers and transactions.
        acls: access control lists.
        quotas: client quotas.
        scram_credentials: SCRAM credentials of users.
        delegation_tokens: delegation tokens.
        cluster: the cluster as a whole.
        features: finalized and supported features.
        quorum: the KRaft quorum.
        log_dirs: brokers' log directories.
    """

    topics: TopicCalls
    partitions: PartitionCalls
    configs: ConfigCalls
    groups: GroupCalls
    share_groups: ShareGroupCalls
    streams_groups: StreamsGroupCalls
    transactions: TransactionCalls
    acls: AclCalls
    quotas: QuotaCalls
    scram_credentials: ScramCredentialCalls
    delegation_tokens: DelegationTokenCalls
    cluster: ClusterCalls
    features: FeatureCalls
    quorum: QuorumCalls
    log_dirs: LogDirCalls
    _calls: Calls

    def __init__(self) -> None:
        raise TypeError("use trionet.open_admin() to open an admin client")

    @classmethod
    def _create(cls, calls: Calls) -> Admin:
        self = cls.__new__(cls)
        self._calls = calls
        self.topics = TopicCalls(calls)
        self.partitions = PartitionCalls(calls)
        self.configs = ConfigCalls(calls)
        self.groups = GroupCalls(calls)
        self.share_groups = ShareGroupCalls(calls)
        self.streams_groups = StreamsGroupCalls(calls)
        self.transactions = TransactionCalls(calls)
        self.acls = AclCalls(calls)
        self.quotas = QuotaCalls(calls)
        self.scram_credentials = ScramCredentialCalls(calls)
        self.delegation_tokens = DelegationTokenCalls(calls)
        self.cluster = ClusterCalls(calls)
        self.features = FeatureCalls(calls)
        self.quorum = QuorumCalls(calls)
        self.log_dirs = LogDirCalls(calls)
        return self

    def connection_problem(self) -> str:
        """Return why the cluster or a broker cannot be reached; an empty string if unknown.

        Useful after a timeout of your own, such as ``trio.move_on_after``; the message of a
        :class:`.CallTimedOutError` already includes it.
        """
        return self._calls.client.connection_problem()

    async def until_connected(self) -> None:
        """Wait until a broker of the cluster accepts requests, at the address that it advertises.

        Other calls wait for that, too, until their time limits, since a broker may be starting.
        This call, made first, is for programs whose address may be wrong.

        Raises:
            DisconnectedError: for two seconds, nothing listens at any bootstrap server, or at any
                address that the brokers advertise, or the names do not exist. A server that is
                merely silent is waited for.
            AuthenticationError: the credentials are rejected.
            UnsupportedVersionError: the brokers and this client have no version in common.
            trio.ClosedResourceError: the client is closed.
        """
        await until_connected(self._calls.client)

    def statistics(self) -> ClientStatistics:
        """Return the current values of the client's metrics, keyed by Kafka's metric names."""
        return self._calls.client.metrics.statistics(trio.current_time())

    async def nodes(self) -> dict[int, Node]:
        """Return the known brokers, keyed by id.

        Raises:
            CallTimedOutError: no broker could be reached in time.
            AuthenticationError: a broker rejected the client's credentials.
            UnsupportedVersionError: the client and brokers have no version in common.
        """
        return dict(await self._calls.retry(self._calls.nodes.known))

    async def request(
        self, body: Message, *, broker_id: int | None = None, version_max: int | None = None
    ) -> Any:
        """Send any request of Kafka's protocol once, and return the response unchecked.

        Args:
            body: a request from :mod:`trionet.protocol.messages`.
            broker_id: the broker; None for any.
            version_max: the newest version that the caller supports; None for no limit.

        Raises:
            ApiError: BROKER_NOT_AVAILABLE if there is no broker with this id.
            CallTimedOutError: no broker could be reached in time.
            TrionetError: see :meth:`.NetworkClient.request`.
        """
        return await self._calls.request(body, broker_id=broker_id, version_max=version_max)

    # Kafka's flat names for the calls.

    create_topics = _flat("topics", TopicCalls.create)
    delete_topics = _flat("topics", TopicCalls.delete)
    create_partitions = _flat("topics", TopicCalls.create_partitions)
    list_topics = _flat("topics", TopicCalls.list)
    describe_topics = _flat("topics", TopicCalls.describe)

    list_offsets = _flat("partitions", PartitionCalls.list_offsets)
    delete_records = _flat("partitions", PartitionCalls.delete_records)
    elect_leaders = _flat("partitions", PartitionCalls.elect_leaders)
    alter_partition_reassignments = _flat("partitions", PartitionCalls.alter_reassignments)
    list_partition_reassignments = _flat("partitions", PartitionCalls.list_reassignments)

    describe_configs = _flat("configs", ConfigCalls.describe)
    incremental_alter_configs = _flat("configs", ConfigCalls.alter)
    list_config_resources = _flat("configs", ConfigCalls.list_resources)

    list_groups = _flat("groups", GroupCalls.list)
    describe_groups = _flat("groups", GroupCalls.describe)
    delete_groups = _flat("groups", GroupCalls.delete)
    remove_members = _flat("groups", GroupCalls.remove_members)
    list_group_offsets = _flat("groups", GroupCalls.list_offsets)
    alter_group_offsets = _flat("groups", GroupCalls.alter_offsets)
    delete_group_offsets = _flat("groups", GroupCalls.delete_offsets)

    describe_share_groups = _flat("share_groups", ShareGroupCalls.describe)
    list_share_group_offsets = _flat("share_groups", ShareGroupCalls.list_offsets)
    alter_share_group_offsets = _flat("share_groups", ShareGroupCalls.alter_offsets)
    delete_share_group_offsets = _flat("share_groups", ShareGroupCalls.delete_offsets)

    describe_streams_groups = _flat("streams_groups", StreamsGroupCalls.describe)

    list_transactions = _flat("transactions", TransactionCalls.list)
    describe_transactions = _flat("transactions", TransactionCalls.describe)
    describe_producers = _flat("transactions", TransactionCalls.describe_producers)
    find_hanging_transactions = _flat("transactions", TransactionCalls.find_hanging)
    fence_producers = _flat("transactions", TransactionCalls.fence_producers)
    abort_transaction = _flat("transactions", TransactionCalls.abort)
    terminate_transaction = _flat("transactions", TransactionCalls.terminate)

    create_acls = _flat("acls", AclCalls.create)
    describe_acls = _flat("acls", AclCalls.describe)
    delete_acls = _flat("acls", AclCalls.delete)

    describe_client_quotas = _flat("quotas", QuotaCalls.describe)
    alter_client_quotas = _flat("quotas", QuotaCalls.alter)

    describe_user_scram_credentials = _flat("scram_credentials", ScramCredentialCalls.describe)
    alter_user_scram_credentials = _flat("scram_credentials", ScramCredentialCalls.alter)

    create_delegation_token = _flat("delegation_tokens", DelegationTokenCalls.create)
    renew_delegation_token = _flat("delegation_tokens", DelegationTokenCalls.renew)
    expire_delegation_token = _flat("delegation_tokens", DelegationTokenCalls.expire)
    describe_delegation_tokens = _flat("delegation_tokens", DelegationTokenCalls.describe)

    describe_cluster = _flat("cluster", ClusterCalls.describe)
    unregister_broker = _flat("cluster", ClusterCalls.unregister_broker)

    describe_features = _flat("features", FeatureCalls.describe)
    update_features = _flat("features", FeatureCalls.update)

    describe_metadata_quorum = _flat("quorum", QuorumCalls.describe)
    add_raft_voter = _flat("quorum", QuorumCalls.add_voter)
    remove_raft_voter = _flat("quorum", QuorumCalls.remove_voter)

    describe_log_dirs = _flat("log_dirs", LogDirCalls.describe)
    alter_replica_log_dirs = _flat("log_dirs", LogDirCalls.alter_replicas)


# Set the called name, so that tracebacks and warnings about forgotten awaits show it.
for _name, _method in vars(Admin).items():
    if hasattr(_method, "__wrapped__"):
        _method.__name__, _method.__qualname__ = _name, f"{Admin.__qualname__}.{_name}"


@asynccontextmanager
async def open_admin(
    bootstrap_servers: str | Iterable[str] | None = None,
    config: Mapping[str, object] | AdminSettings | None = None,
    *,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    **keywords: Unpack[AdminKeywords],
) -> AsyncIterator[Admin]:
    """Open an admin client for the duration of an ``async with`` block.

    The client connects on the first call.

    Args:
        bootstrap_servers: ``host:port`` strings, or one comma-separated string; None if
            ``bootstrap.controllers`` is set, to send all requests to controllers (KIP-919).
        config: settings under Kafka's dotted keys, as strings or Python values; or a settings
            object.
        network: opens connections.
        token_provider: a sync or async function that returns the tokens for
            ``sasl.mechanism=OAUTHBEARER``.
        keywords: settings under Kafka's keys, with underscores instead of dots; they take
            precedence over ``config``.

    Raises:
        ConfigError: a key is unknown, a value is not allowed, ``bootstrap_servers`` is invalid, or
            both servers and controllers are set, or neither.
        TypeError: ``config`` is not settings, or is a settings object beside other settings.
        RuntimeError: trio does not run the calling task.
        AuthenticationError, DisconnectedError: a token endpoint returned no token.
        Exception: the token provider raised it.

    Cancellation: calls that shield themselves work until the block ends, even if it is cancelled.
    At its end all connections are closed immediately.
    """
    settings = admin_settings(config, keywords, token_provider)
    async with open_calls(bootstrap_servers, settings, network=network) as calls:
        yield Admin._create(calls)  # noqa: SLF001 - nothing else creates one
