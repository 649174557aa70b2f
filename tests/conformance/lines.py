"""What Kafka's network layer is held to, line by line: number, weight, and what it is about.

The numbers are those of a list that was made from the tests of Kafka's own network layer. A test
that shows what a line says begins its docstring with the number, or numbers: ``S12, S14: ...``.
``CORE`` is what Kafka 0.10 did already, ``BEYOND`` what came later. A line that no test can show
here says why, and what does its work instead.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Weight(Enum):
    """How much a line counts."""

    CORE = "core"
    BEYOND = "beyond"


CORE, BEYOND = Weight


class Line(NamedTuple):
    """One line of the list.

    Attributes:
        number: the letter of its part, and its place there.
        weight: a core line must hold, or have a good reason.
        about: what it is about, in a few words.
        reason: why no test bears its number; empty if one has to.
    """

    number: str
    weight: Weight
    about: str
    reason: str = ""


FRAMES = [
    Line("F1", CORE, "the bytes of a frame are counted as they come, in whatever parts"),
    Line("F2", CORE, "a whole frame is handed out once"),
    Line("F3", CORE, "a Send in parts is complete with its last byte"),
    Line("F4", CORE, "one Send at a time"),
    Line("F5", BEYOND, "connection ids are read back, IPv6 included"),
    Line("F6", BEYOND, "text that is no connection id gives none"),
    Line("F7", CORE, "a connection id is made of both addresses"),
    Line("F8", BEYOND, "the memory pool's rules of taking and giving back"),
]

SELECTOR = [
    Line("S1", CORE, "a connection that the far end closed is told of; its id is free again"),
    Line("S2", CORE, "a second Send beside the first raises"),
    Line("S3", BEYOND, "and its channel is closed for it"),
    Line("S4", CORE, "sending to what was never connected raises"),
    Line("S5", CORE, "a host without an address is an I/O error"),
    Line("S6", CORE, "a refused connect is told of as disconnected"),
    Line("S7", CORE, "hundreds of requests on several connections, answered in order"),
    Line("S8", CORE, "a message much larger than the socket's buffer"),
    Line("S9", CORE, "large messages in sequence keep their order"),
    Line("S10", CORE, "an empty payload travels"),
    Line("S11", BEYOND, "byte totals move with each part, message totals with the whole"),
    Line("S12", BEYOND, "the results of a poll may be emptied by their reader"),
    Line("S13", CORE, "connecting under an id that is in use raises"),
    Line("S14", CORE, "a muted channel is silent, the others are not"),
    Line("S15", BEYOND, "closing all goes on beyond one that fails to close"),
    Line("S16", BEYOND, "a channel that cannot be made leaves nothing behind"),
    Line("S17", CORE, "an unused connection is closed when its time is over"),
    Line("S18", BEYOND, "also one that never said anything"),
    Line("S19", BEYOND, "a connect that succeeds at once, closed before or after it is told of"),
    Line("S20", BEYOND, "a connect that fails late leaves nothing behind"),
    Line("S21", BEYOND, "a muted connection expires although data waits"),
    Line("S22", BEYOND, "also when its peer has closed"),
    Line("S23", CORE, "frames that are waiting are delivered before their connection expires"),
    Line("S24", CORE, "frames before the end of a stream come one by one, and then the end"),
    Line("S25", BEYOND, "a part of a frame before the end delays nothing"),
    Line("S26", BEYOND, "a want of request memory stops reading until some is given back"),
    Line("S27", BEYOND, "connected and failed in the same poll is only disconnected"),
    Line("S28", CORE, "outgoing connections are counted"),
    Line("S29", BEYOND, "incoming connections are counted"),
    Line("S30", BEYOND, "connections are counted by what their clients call themselves"),
    Line("S31", BEYOND, "which channel goes first when room is needed"),
    Line("S32", BEYOND, "a closed selector leaves no metrics, whatever failed"),
    Line("S33", BEYOND, "a Send can be complete without a byte written by this call"),
    Line("S34", CORE, "channels may be closed while receives are walked"),
    Line("S35", BEYOND, "the I/O metrics have current names, and the old ones are marked"),
    Line("S36", CORE, "all of this over TLS"),
    Line("S37", BEYOND, "connections are counted by cipher"),
    Line("S38", BEYOND, "a channel with bytes inside TLS closes without a trace"),
    Line("S39", BEYOND, "too few bytes inside TLS are looked at once, and wait for more"),
    Line("S40", BEYOND, "the same for a muted channel"),
    Line("S41", BEYOND, "a want of request memory under TLS"),
    Line("S42", CORE, "renegotiation is refused"),
    Line("S43", BEYOND, "a key update of TLS 1.3 keeps data flowing"),
]

TLS = [
    Line("T1", CORE, "the server's name is checked against its certificate, without a look-up"),
    Line("T2", CORE, "a wrong name fails a client that checks, and no other"),
    Line("T3", CORE, "a client's name is not checked"),
    Line("T4", CORE, "client certificates: required"),
    Line("T5", CORE, "client certificates: not asked for"),
    Line("T6", CORE, "client certificates: asked for"),
    Line("T7", BEYOND, "a listener's own setting wins over the general one"),
    Line("T8", BEYOND, "kinds of keys and of stores"),
    Line("T9", CORE, "wrong passwords and stores are configuration errors"),
    Line("T10", CORE, "no common version or cipher suite fails the handshake"),
    Line("T11", BEYOND, "byte and request metrics of a large request"),
    Line("T12", BEYOND, "a poll reads all that has arrived"),
    Line("T13", CORE, "data is intact whatever the size of buffers"),
    Line("T14", BEYOND, "the loop's time is measured by connection"),
    Line("T15", BEYOND, "a connection that breaks in its handshake is no failed authentication"),
    Line("T16", BEYOND, "neither is a peer that leaves during it"),
    Line("T17", BEYOND, "a client is told that its handshake failed"),
    Line("T18", CORE, "what was sent before a close arrives"),
    Line(
        "T19",
        BEYOND,
        "the TLS settings between brokers fit each other",
        "a node is alone: no broker connects to another one",
    ),
    Line("T20", BEYOND, "a renewed key store, without a restart"),
    Line("T21", BEYOND, "a renewed trust store, without a restart"),
    Line("T22", BEYOND, "a TLS engine of one's own"),
    Line("T23", BEYOND, "the last steps of an engine's handshake and close"),
    Line("T24", BEYOND, "several buffers in one read or write"),
]

SASL = [
    Line("A1", CORE, "PLAIN, with and without TLS"),
    Line("A2", CORE, "PLAIN with a wrong or missing name or password, counted"),
    Line("A3", CORE, "SCRAM, both hashes, its failures, odd characters in names"),
    Line("A4", CORE, "several mechanisms, and new ones"),
    Line("A5", BEYOND, "the largest frame before authentication"),
    Line("A6", BEYOND, "texts of errors that a client may see"),
    Line(
        "A7",
        BEYOND,
        "delegation tokens over SCRAM",
        "there are no delegation tokens; OAUTHBEARER does their work",
    ),
    Line("A8", CORE, "ApiVersions before authentication"),
    Line("A9", CORE, "ApiVersions of a version that is not served, and then one that is"),
    Line("A10", BEYOND, "ApiVersions with bad content, and with good"),
    Line("A11", CORE, "a handshake of a version that is not served"),
    Line("A12", CORE, "garbage before and after the handshake"),
    Line("A13", CORE, "ApiVersions after the handshake"),
    Line("A14", CORE, "the largest possible frame size, before and after the handshake"),
    Line("A15", CORE, "other requests before authentication"),
    Line("A16", CORE, "login modules and mechanisms that are missing, disabled or unknown"),
    Line("A17", BEYOND, "what checks credentials, by mechanism and by listener"),
    Line("A18", CORE, "credentials in the configuration itself"),
    Line("A19", BEYOND, "old and new framing of tokens"),
    Line("A20", BEYOND, "OAUTHBEARER"),
    Line("A21", BEYOND, "authenticating again as somebody else, or in another way"),
    Line("A22", BEYOND, "authenticating again within a second"),
    Line("A23", BEYOND, "authenticating again and again"),
    Line("A24", BEYOND, "correlation ids that a client keeps for its authentication"),
    Line("A25", BEYOND, "client certificates beside SASL only when the listener itself asks"),
    Line("A26", BEYOND, "a failure is answered late"),
    Line("A27", BEYOND, "unless the client leaves before"),
]

SERVER = [
    Line("P1", CORE, "a request reaches the handlers, its answer comes back"),
    Line("P2", BEYOND, "a client's name and version, from its ApiVersions on"),
    Line("P3", BEYOND, "an old ApiVersions leaves them unknown"),
    Line("P4", BEYOND, "requests are counted by version, deprecated ones by client too"),
    Line("P5", BEYOND, "listeners that start at different times"),
    Line("P6", BEYOND, "a stop while the acceptor waits for a full processor"),
    Line("P7", BEYOND, "an API that is not served closes the connection"),
    Line("P8", CORE, "a request that is too large ends its connection at the size"),
    Line("P9", CORE, "whole requests before the client's close are delivered"),
    Line("P10", CORE, "requests without answers let the next one through"),
    Line("P11", BEYOND, "connection ids carry processor and index"),
    Line("P12", CORE, "an idle connection is closed"),
    Line("P13", CORE, "also while its request is being worked on; the answer is dropped"),
    Line("P14", BEYOND, "requests that wait behind that one are never delivered"),
    Line("P15", BEYOND, "a new connection under an id that is in use"),
    Line("P16", BEYOND, "an answer during a throttle leaves at once, the channel stays muted"),
    Line("P17", BEYOND, "an answer after a throttle unmutes"),
    Line("P18", BEYOND, "both without an answer"),
    Line("P19", CORE, "a stop closes listening sockets and connections"),
    Line("P20", CORE, "one connection too many from an address"),
    Line("P21", BEYOND, "no connections but those of one address"),
    Line("P22", CORE, "an override by host name"),
    Line("P23", BEYOND, "a socket that fails while it is accepted"),
    Line("P24", BEYOND, "too many connections a second from an address"),
    Line("P25", BEYOND, "throttled sockets when the server stops"),
    Line("P26", CORE, "a request and its answer over TLS"),
    Line("P27", BEYOND, "a session whose life is over"),
    Line("P28", CORE, "who is on a plaintext connection: nobody"),
    Line("P29", CORE, "metrics of a request whose client left during the answer"),
    Line("P30", BEYOND, "a stop before the start"),
    Line("P31", BEYOND, "requests of a client that reset its connection"),
    Line("P32", CORE, "metrics of a request whose connection has expired"),
    Line("P33", BEYOND, "request metrics at a stop"),
    Line("P34", CORE, "idle gauges after a stop"),
    Line("P35", BEYOND, "which metrics name the listener"),
    Line("P36", BEYOND, "the first of two registrations fails"),
    Line("P37", BEYOND, "the first of two answers fails"),
    Line("P38", BEYOND, "a Send to what the poller has lost"),
    Line("P39", BEYOND, "a Send to a peer that is gone"),
    Line("P40", BEYOND, "whole requests before the end"),
    Line("P41", BEYOND, "no request before the end"),
    Line("P42", BEYOND, "a part of a request before the end"),
    Line("P43", BEYOND, "whole requests and a part before the end"),
    Line("P44", BEYOND, "an answer that fails while requests wait behind it"),
    Line("P45", BEYOND, "whole requests of a connection that is closing"),
    Line("P46", BEYOND, "a muted TLS connection with bytes inside expires"),
    Line("P47", BEYOND, "bytes inside TLS are requests after the unmute"),
    Line("P48", BEYOND, "the first of two receives fails"),
    Line("P49", BEYOND, "the first of two completed sends fails"),
    Line("P50", BEYOND, "a channel that cannot be forgotten does not hide the next"),
    Line("P51", BEYOND, "a poll that fails once"),
    Line("P52", BEYOND, "what ends a processor, ends it cleanly"),
    Line("P53", BEYOND, "a storm of connections is taken in small parts"),
    Line(
        "P54",
        BEYOND,
        "requests of a privileged listener",
        "a node is alone: nothing is left for brokers to ask of each other in private",
    ),
    Line("P55", BEYOND, "the backlog of a listening socket"),
    Line("P56", BEYOND, "requests inside TLS do not wait for the socket"),
    Line("P57", BEYOND, "a start that fails says so"),
    Line("P58", BEYOND, "a port is open only from the start on"),
    Line("P59", BEYOND, "who wants to know is told which connection ended"),
    Line("P60", CORE, "after each fault the others are served and the counts are right"),
]

QUOTAS = [
    Line("Q1", BEYOND, "a listener that nobody knows"),
    Line("Q2", CORE, "counting back what was never counted"),
    Line("Q3", CORE, "no limits by default"),
    Line("Q4", CORE, "a limit for each address"),
    Line("Q5", BEYOND, "a limit for the whole server"),
    Line("Q6", BEYOND, "which the protected listener exceeds"),
    Line("Q7", BEYOND, "a limit for each listener"),
    Line("Q8", BEYOND, "a rate below the server's limit"),
    Line("Q9", BEYOND, "a rate above it"),
    Line("Q10", BEYOND, "rates below and above a listener's limit"),
    Line("Q11", BEYOND, "a rate below the limit of an address"),
    Line("Q12", BEYOND, "a rate above it"),
    Line("Q13", BEYOND, "rates of addresses and of a listener together"),
    Line("Q14", BEYOND, "what is refused is in no rate"),
    Line("Q15", BEYOND, "a listener's limit is above 0"),
    Line("Q16", BEYOND, "rates of server and listener change at run time"),
    Line("Q17", BEYOND, "which limit of an address counts"),
    Line("Q18", BEYOND, "limits of addresses change at run time"),
    Line("Q19", BEYOND, "a rate and a number together"),
    Line("Q20", BEYOND, "limits of a running broker change"),
    Line("Q21", BEYOND, "the number of processors changes at run time"),
]

REQUESTS = [
    Line("R1", BEYOND, "the log of requests hides secrets"),
    Line("R2", BEYOND, "the log of requests is valid JSON"),
    Line(
        "R3",
        BEYOND,
        "answers inside envelopes",
        "a node is alone: nobody passes the requests of others on",
    ),
    Line("R4", CORE, "a full queue of requests makes processors wait"),
]

NETWORK_CLIENT = [
    Line("N1", CORE, "nothing is sent to a node that is not ready"),
    Line("N2", CORE, "a request, its answer, its callback; with discovery of versions and without"),
    Line("N3", CORE, "a host without an address is not ready, and raises nothing"),
    Line("N4", CORE, "a closed node has nothing in flight"),
    Line("N5", BEYOND, "metadata that no version can ask for are told to who waits for them"),
    Line("N6", BEYOND, "a new connection is asked for its versions before it is ready"),
    Line("N7", BEYOND, "an error in place of the versions ends the connection"),
    Line("N8", BEYOND, "an older broker is asked again in a version it knows, or in 0"),
    Line("N9", CORE, "a late answer ends the connection, and metadata are asked for"),
    Line("N10", BEYOND, "a request may have a time of its own"),
    Line("N11", BEYOND, "connects that nobody answers end after their time, all of them"),
    Line("N12", BEYOND, "the time of throttling makes no answer late"),
    Line("N13", BEYOND, "a node that throttles is left alone for so long"),
    Line("N14", BEYOND, "but not in versions of the time before clients did that"),
    Line("N15", CORE, "the only node is the least loaded, unless its wait runs"),
    Line("N16", BEYOND, "a node that is full is none, and yet a ready connection is there"),
    Line("N17", BEYOND, "nodes that cannot be reached are offered in turn"),
    Line("N18", BEYOND, "a failed authentication leaves the question to another node alone"),
    Line("N19", BEYOND, "a throttled node is not the least loaded"),
    Line("N20", CORE, "the delay of a connection: none, for ever, the wait after its end"),
    Line("N21", BEYOND, "the wait grows with each failure in a row"),
    Line("N22", CORE, "a user's own question for metadata comes back when its connection is lost"),
    Line("N23", BEYOND, "a node that hangs up on the question for versions surfaces nowhere"),
    Line("N24", BEYOND, "nor does a connection that is ended during it"),
    Line("N25", BEYOND, "requests of an ended connection come back in their order"),
    Line("N26", BEYOND, "an ended connection waits once, however often it is ended"),
    Line("N27", CORE, "correlation ids are unique, and leave Kafka's own alone"),
    Line("N28", BEYOND, "a lost connection is made to where the name points now"),
    Line("N29", BEYOND, "an address that refuses is followed by the next"),
    Line("N30", BEYOND, "new addresses are tried in turn after a loss"),
    Line("N31", BEYOND, "a node that is closed while it connects leaves no trace"),
    Line("N32", BEYOND, "silence to the question for versions is late as any other"),
    Line("N33", BEYOND, "a client's own metrics go to one connected node"),
]

IN_FLIGHT = [
    Line("I1", CORE, "the newest request is completed first when it has no answer"),
    Line("I2", CORE, "answers complete the oldest first"),
    Line("I3", BEYOND, "all of a node are taken in the order they were sent"),
    Line("I4", BEYOND, "any late request makes its node late"),
    Line("I5", CORE, "nothing in flight cannot be completed"),
]

CONNECTION_STATES = [
    Line("C1", CORE, "the way of a connection: unknown, connecting, ready, lost, tried again"),
    Line("C2", CORE, "each node waits for itself"),
    Line("C3", BEYOND, "a failed authentication is kept until one succeeds"),
    Line("C4", CORE, "a removed node is as unknown as before"),
    Line("C5", BEYOND, "no wait goes beyond its limit"),
    Line("C6", BEYOND, "waits double, and only being ready ends the row"),
    Line("C7", BEYOND, "a throttled node is not ready until its time"),
    Line("C8", BEYOND, "addresses in turn; a new name has its own"),
    Line("C9", BEYOND, "the address that was tried last is passed over"),
    Line("C10", BEYOND, "preparing is connecting, or asking for versions"),
    Line("C11", BEYOND, "the time for connecting doubles, and begins anew when one is made"),
    Line("C12", BEYOND, "connects that take too long"),
    Line("C13", CORE, "the text of bootstrap.servers"),
    Line("C14", BEYOND, "addresses of one family, all of them"),
    Line("C15", CORE, "waiting for a node ends with its scope, or with its connection"),
    Line("C16", CORE, "sending and waiting gives the request's own answer, or an error"),
]

BUFFER_POOL = [
    Line("B1", CORE, "memory that was taken comes back, whatever its size"),
    Line("B2", CORE, "more than there is can never be had"),
    Line("B3", CORE, "who waits goes on when memory comes back, first come, first served"),
    Line("B4", CORE, "a wait ends with an error after max.block.ms, not before"),
    Line("B5", CORE, "who gives up leaves no place and no memory taken"),
    Line("B6", BEYOND, "an error on the way gives back what was taken"),
    Line("B7", CORE, "many who take and give leave all memory free"),
    Line("B8", BEYOND, "sizes beyond 32 bits count"),
    Line("B9", BEYOND, "after the end nobody gets memory, and who waits is told"),
]

ACCUMULATOR = [
    Line("K1", CORE, "a node is ready when a batch is full; records keep their order"),
    Line("K2", CORE, "a record larger than a batch has its own"),
    Line("K3", CORE, "a batch waits for linger.ms"),
    Line("K4", CORE, "a drain keeps to the size of a request"),
    Line("K5", BEYOND, "the partitions of a node take turns"),
    Line("K6", CORE, "every record is drained once, whoever appends meanwhile"),
    Line("K7", CORE, "the next look is when the first wait ends"),
    Line("K8", CORE, "a batch that failed waits while others go"),
    Line("K9", BEYOND, "its wait grows with each attempt"),
    Line("K10", BEYOND, "a newer leader is sent to without a wait"),
    Line("K11", CORE, "a flush makes all go and waits for them, however it ends"),
    Line("K12", CORE, "a forced end fails all there is"),
    Line("K13", BEYOND, "or all that waits, and leaves what was sent"),
    Line("K14", BEYOND, "delivery.timeout.ms counts from the beginning of a batch"),
    Line("K15", CORE, "a muted partition waits"),
    Line("K16", BEYOND, "parts of a batch that was too large keep order and deliveries"),
    Line("K17", BEYOND, "records without a key stay for a batch, and go where queues are short"),
    Line(
        "K18",
        BEYOND,
        "what is in a transaction that completes does not wait; old formats are refused",
        "completing flushes, and that makes all go at once; no other format than 2 is written",
    ),
    Line("K19", BEYOND, "a node that leads nothing gets nothing"),
]

SENDER = [
    Line("D1", CORE, "a record is sent, and its offset told"),
    Line("D2", CORE, "the throttle times of answers to Produce are counted"),
    Line(
        "D3",
        BEYOND,
        "every metric of the sender is registered",
        "counts are attributes of one class; what a metric is called is the list of metrics' own",
    ),
    Line("D4", CORE, "a lost connection is made again, as often as retries allow"),
    Line("D5", CORE, "with one in flight the second waits, whoever leads"),
    Line("D6", CORE, "who hears of an expiry may send again at once"),
    Line("D7", CORE, "idle topics leave the metadata and come back"),
    Line("D8", BEYOND, "a node that takes nothing gets no records without keys"),
    Line(
        "D9",
        BEYOND,
        "records are converted for brokers that know older formats",
        "brokers before 0.11 are refused, as Kafka's own clients do since 4.0 (KIP-896)",
    ),
    Line("D10", CORE, "an error that will not pass fails at once"),
    Line("D11", BEYOND, "delivery.timeout.ms ends batches in flight, and late answers are nothing"),
    Line("D12", BEYOND, "the memory of an expired batch is given back once"),
    Line("D13", BEYOND, "guaranteed order holds up the next until the answer"),
    Line("D14", BEYOND, "several partitions may expire at once"),
    Line("D15", BEYOND, "a sender waits for what is due, and never spins"),
    Line("D16", BEYOND, "nor does it when there is nothing to send"),
    Line("D17", BEYOND, "a passing error waits before the next attempt"),
    Line("D18", BEYOND, "a new leader that an answer names is sent to at once"),
    Line("D19", BEYOND, "errors of single records are told to these"),
    Line("D20", BEYOND, "five in flight stay in order, without duplicates"),
    Line("D21", BEYOND, "unresolved sequences, and new epochs"),
    Line("D22", BEYOND, "a batch that is too large is split"),
]

SEEDS = [
    Line("X1", CORE, "connections go to the processors in turn"),
    Line("X2", CORE, "a negative size ends its connection"),
    Line("X3", CORE, "the largest size is accepted, one more is not"),
    Line("X4", CORE, "an end inside a frame delivers nothing"),
    Line("X5", CORE, "writing is watched for only while something is to be written"),
    Line("X6", CORE, "nothing is read between a request and its answer"),
    Line("X7", CORE, "a poll with a negative wait raises"),
    Line("X8", CORE, "one idle connection a poll expires, the least recently used first"),
    Line("X9", CORE, "a deliberate close is not told of, any other is, once"),
    Line("X10", CORE, "requests of one connection are never worked on at the same time"),
    Line("X11", CORE, "an answer to a connection that is gone"),
    Line("X12", CORE, "a completed Send that nobody asked for"),
    Line("X13", CORE, "no request follows one that has not left, nor more than five"),
    Line("X14", CORE, "a callback that fails stops no other"),
    Line("X15", CORE, "an answer to another request than the next"),
    Line("X16", CORE, "the options of sockets"),
    Line("X17", CORE, "metadata are asked for again after a loss or a late answer"),
]

PARTS = {
    "Frames and channels": FRAMES,
    "Selector": SELECTOR,
    "TLS": TLS,
    "SASL": SASL,
    "SocketServer, acceptor, processors": SERVER,
    "Connection quotas": QUOTAS,
    "Request channel": REQUESTS,
    "NetworkClient": NETWORK_CLIENT,
    "In-flight requests": IN_FLIGHT,
    "States of connections, addresses": CONNECTION_STATES,
    "Buffer pool": BUFFER_POOL,
    "Record accumulator": ACCUMULATOR,
    "Sender": SENDER,
    "What is older than Kafka's tests": SEEDS,
}
