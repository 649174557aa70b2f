"""The tables of the database: what their columns may contain, for writing and for reading alike.

The problem: a value that one side accepts and the other side refuses, such as a number from a
client, would be stored and acknowledged, and keep the broker from ever starting again.

The choice: a table is declared once, with a check for each column, and rows go in and out only
through that :class:`Table`. A check allows whatever a request can contain, unless handlers reject
it. A row that is unreadable all the same, since the file was damaged or edited, is ignored with a
warning; it stays in the database, where it can be repaired, until a row with the same key replaces
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import attrs

from ..._util._logging import get_logger
from ._database import DatabaseError

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection

logger = get_logger("trionet.broker")

WARNINGS_MAX: Final = 10
"""How many unreadable rows of a table are reported one by one."""

_SHOWN_MAX: Final = 200

# RecursionError: of JSON that is nested too deeply.
UNREADABLE: Final = (DatabaseError, ValueError, TypeError, LookupError, RecursionError)

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]

Check: TypeAlias = Callable[[Any], None]
"""Raises ValueError for a value of an allowed type that is not allowed."""

_NULL: Final = type(None)
_SHOWN: Final = {int: "an integer", float: "a number", str: "text", bytes: "bytes", _NULL: "null"}


@attrs.frozen
class Column:
    """What a column may contain.

    Attributes:
        types: the allowed types. SQLite itself allows any type in any column.
        check: checks a value of these types, other than None.
    """

    types: tuple[type, ...]
    check: Check | None = None


def integer(lowest: int, highest: int) -> Column:
    """Return a column for integers from ``lowest`` to ``highest``."""
    return Column((int,), _in_range(lowest, highest))


def real(lowest: float, highest: float) -> Column:
    """Return a column for numbers from ``lowest`` to ``highest``."""
    return Column((int, float), _in_range(lowest, highest))


def _in_range(lowest: float, highest: float) -> Check:
    def check(value: Any) -> None:
        if not lowest <= value <= highest:
            raise ValueError(f"{value} is not between {lowest} and {highest}")

    return check


def blob_of(size: int) -> Column:
    """Return a column for bytes of the given size."""

    def check(value: Any) -> None:
        if len(value) != size:
            raise ValueError(f"{len(value)} bytes; expected {size}")

    return Column((bytes,), check)


def one_of(allowed: Collection[str]) -> Column:
    """Return a column for one of some texts."""

    def check(value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"{value!r:.100} is not one of {', '.join(sorted(allowed))}")

    return Column((str,), check)


def nullable(column: Column) -> Column:
    """Return a column that may also be null."""
    return Column((*column.types, _NULL), column.check)


TEXT: Final = Column((str,))
BLOB: Final = Column((bytes,))
INT64: Final = Column((int,))  # SQLite stores no other integers
INT32: Final = integer(-(2**31), 2**31 - 1)
# Of what is never negative.
UINT31: Final = integer(0, 2**31 - 1)
UINT63: Final = integer(0, 2**63 - 1)


class Fields:
    """Named fields, in order.

    Args:
        columns: what each field may contain.
    """

    def __init__(self, **columns: Column) -> None:
        self.names: tuple[str, ...] = tuple(columns)
        self._columns = tuple(columns.values())
        # One look-up instead of a call per column: an offset commit may have 100,000 rows.
        self._types = frozenset(product(*(each.types for each in self._columns)))
        self._checks = [
            (index, each.check)
            for index, each in enumerate(self._columns)
            if each.check is not None
        ]

    def checked(self, row: Row) -> Row:
        """Return the values of all fields after checking them.

        Raises:
            DatabaseError: a value is not allowed.
        """
        if tuple(map(type, row)) not in self._types:
            raise DatabaseError(self._wrong_type(row))
        for index, check in self._checks:
            value = row[index]
            if value is not None:
                try:
                    check(value)
                except ValueError as error:
                    raise DatabaseError(f"{self.names[index]}: {error}") from None
        return row

    def _wrong_type(self, row: Row) -> str:
        if len(row) != len(self.names):
            return f"{len(row)} values; expected {len(self.names)}"
        wrong = [
            f"{name}: {value!r:.100} is not {_SHOWN[column.types[0]]}"
            for name, column, value in zip(self.names, self._columns, row, strict=True)
            if type(value) not in column.types
        ]
        return ", ".join(wrong)


class Table:
    """A table and the checks of its columns.

    Args:
        name: the name of the table.
        keys: how many columns, from the first one on, identify a row. Only these are logged, as
            the others may be secret.
        columns: the checks of all columns, by name, in their order in the table.
    """

    def __init__(self, name: str, keys: int, columns: Fields) -> None:
        self.name = name
        self._keys = keys
        self.columns = columns
        names = ", ".join(f'"{each}"' for each in columns.names)
        marks = ", ".join("?" * len(columns.names))
        into = f"{name} ({names}) VALUES ({marks})"
        self._insert = f"INSERT OR REPLACE INTO {into}"
        self._select = f"SELECT {names} FROM {name}"  # noqa: S608 - ours

    def put(self, connection: Connection, rows: Iterable[Row]) -> None:
        """Store rows, replacing those with the same keys.

        Raises:
            DatabaseError: a value is not allowed.
        """
        connection.executemany(self._insert, map(self.columns.checked, rows))

    def read(
        self,
        connection: Connection,
        make: Callable[..., T],
        rest: str = "",
        parameters: Sequence[object] = (),
    ) -> Iterator[T]:
        """Yield what ``make`` returns for the values of each row; ignore unreadable rows.

        Args:
            connection: the database.
            make: creates an object from the values. If they are not allowed together, it may raise
                DatabaseError, ValueError, TypeError, LookupError or RecursionError.
            rest: the rest of the statement: conditions and order.
            parameters: the parameters of ``rest``.
        """
        ignored = 0
        for row in connection.execute(f"{self._select} {rest}", parameters):
            try:
                made = make(*self.columns.checked(row))
            except UNREADABLE as error:
                ignored += 1
                if ignored <= WARNINGS_MAX:
                    logger.warning(
                        "ignoring an unreadable row of the database, in table %s: %s: %s",
                        self.name,
                        ", ".join(f"{key!r:.{_SHOWN_MAX}}" for key in row[: self._keys]),
                        error,
                    )
            else:
                yield made
        if ignored > WARNINGS_MAX:
            logger.warning("ignoring %d unreadable rows of table %s", ignored, self.name)


PROPERTIES: Final = Table("property", 1, Fields(name=TEXT, value=TEXT))
"""Single values of several modules, by name."""


def read_property(connection: Connection, name: str, parse: Callable[[str], T]) -> T | None:
    """Return a property; None if it is missing or ``parse`` raises ValueError."""
    found = list(
        PROPERTIES.read(connection, lambda _, value: parse(value), "WHERE name = ?", (name,))
    )
    return found[0] if found else None
