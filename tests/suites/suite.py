"""What a suite of foreign tests is: where it comes from, what it needs, how it meets our broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import attrs

#: The release of Kafka whose APIs and versions the broker serves.
KAFKA_VERSION = "4.2.0"

#: What tests of ACLs need; without one, a broker serves their APIs too, with an error.
AUTHORIZER: Final = "ACLs (an authorizer)"


@attrs.frozen
class Meeting:
    """A running broker, and how the suite is told of it.

    Attributes:
        port: of a listener that anybody may use.
        environment: variables for the suite's process.
        options: arguments for its pytest.
    """

    port: int
    environment: Mapping[str, str] = attrs.field(factory=dict)
    options: Sequence[str] = ()


@attrs.frozen
class Needs:
    """Tests that need something of the broker which it may not have.

    Attributes:
        pattern: of the tests' ids, with ``*`` for anything.
        apis: Kafka's names of the APIs; the tests run where all of them are served.
        what: what else they need; they run in no case then.
    """

    pattern: str
    apis: Sequence[str] = ()
    what: str = ""

    def missing(self, served: set[str]) -> str:
        """What is missing; empty if nothing is."""
        if self.what:
            return self.what
        return ", ".join(api for api in self.apis if api not in served)


@attrs.frozen
class Suite:
    """The integration tests of a client library.

    Attributes:
        name: what it is called on the command line.
        distribution: the library, as pip knows it.
        repository: where git finds the source.
        tag: of a version, with ``{}`` for its number.
        in_archive: whether the archive of the source that pip finds has the tests.
        requirements: what the tests import besides the library, as pip is told; ``{source}`` is
            the folder of the source.
        tests: files and folders of tests, below the source.
        meet: starts a broker, given a folder for its files.
        meets_by: fixtures by which its tests meet a broker; the others have nothing to tell and are
            passed over. Empty if all of them do.
        needs: tests that need more than some brokers serve; the first that fits a test counts.
        explained: why a test fails through no fault of the broker, by pattern.
        complete: adds what an archive of the source lacks.
    """

    name: str
    distribution: str
    repository: str
    tag: str
    in_archive: bool
    requirements: Sequence[str]
    tests: Sequence[str]
    meet: Callable[[Path], AbstractContextManager[Meeting]]
    meets_by: Sequence[str] = ()
    needs: Sequence[Needs] = ()
    explained: Mapping[str, str] = attrs.field(factory=dict)
    complete: Callable[[Path], None] = lambda _: None
