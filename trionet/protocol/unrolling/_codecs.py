"""The codecs of a message by version, most of which are made when they are first used.

The problem: Kafka's protocol has 70 APIs with 400 versions. Functions without loops over fields are
several times as fast as an interpreter of layouts, but take 50,000 lines, of which a program uses
few.

The choice: the functions of the hot paths are checked in; see ``python3 tests generate``. All
others are made by the same code when a peer first uses them, which takes about a millisecond.

Rejected: an interpreter for the others. It would implement the rules of the protocol a second time,
and a third time for codecs that run in steps (see :mod:`trionet.protocol._stepping`).

All message modules import this module, so it imports nothing that costs time.
"""

from __future__ import annotations

import sys

from trionet.protocol import _wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sized
    from typing import Any, Generic, TypeAlias, TypeVar

    M = TypeVar("M", bound=_wire.Message)
    Codec: TypeAlias = tuple[_wire.Decode[M], Callable[[M, list[Sized]], None]]

    class _Generic(Generic[M]):
        pass

else:
    M = None

    class _Generic:
        def __class_getitem__(cls, item: object) -> type:
            return cls


class Codecs(_Generic[M]):
    """The decoder and the encoder of a message, by version.

    Args:
        message: the class of the message.
        side: ``request``, ``response``, or ``data`` for a message within another one.
        first: the first version.
        last: the last version.
        flexible: the first flexible version (KIP-482).
        unrolled: the codecs that are checked in.
    """

    __slots__ = ("_codecs", "_flexible", "_message", "_side", "versions")

    def __init__(
        self,
        message: type[M],
        side: str,
        first: int,
        last: int,
        flexible: int,
        unrolled: Mapping[int, Codec[M]] | None = None,
    ) -> None:
        self._message = message
        self._side = side
        self._flexible = flexible
        self._codecs: dict[int, Codec[M]] = dict(unrolled or {})
        self.versions: range = range(first, last + 1)

    def __iter__(self) -> Iterator[int]:
        return iter(self.versions)

    def __getitem__(self, version: int) -> Codec[M]:
        """Return the codec of a version.

        Raises:
            KeyError: the message has no such version.
        """
        codec = self._codecs.get(version)
        if codec is None:
            if version not in self.versions:
                raise KeyError(version)
            codec = self._codecs[version] = self._make(version)
        return codec

    def _make(self, version: int) -> Codec[M]:
        import linecache

        from ._functions import source_of
        from ._layout import layout_of

        names = vars(sys.modules[self._message.__module__])
        layout = layout_of(
            self._message,
            names,
            version,
            flexible=version >= self._flexible,
            is_request=self._side == "request",
        )
        made: dict[str, Any] = {**vars(_wire), **names}
        source = source_of(layout, self._side, known=set(vars(_wire)))
        file = f"<codec of {layout.name}, version {version}>"
        # For tracebacks, and for the form of the codec that runs in steps.
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        exec(compile(source, file, "exec"), made)  # noqa: S102 -- our own source
        return made[f"decode_{self._side}"], made[f"encode_{self._side}"]
