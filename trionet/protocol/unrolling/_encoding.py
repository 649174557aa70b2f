"""The source of encoders: one function per message, which appends chunks to a list.

A run of fixed-size fields is written by one ``Struct``, together with the length that follows it.
The tag count of a struct without tags is a pad byte of the preceding run. Short arrays of numbers
are part of a run, with one ``Struct`` for each length.
"""

from __future__ import annotations

from typing import Final

from ._layout import CODES, Field, Struct
from ._source import WIDTH, Formats, Function

#: The maximum number of arrays of numbers in a run, since each combination of lengths has a format.
ARRAYS_TOGETHER_MAX: Final = 3


class Encoder(Function):
    """Writes the source of one function: the encoder of a message, or of a tag section.

    Args:
        formats: see :class:`.Function`.
        is_strict: whether unknown tags are an error in a version without tag sections.
        tag_writers: see :class:`.Function`.
    """

    reserved = Function.reserved | {"item", "text", "data", "records", "tags"}

    def __init__(self, formats: Formats, is_strict: bool, tag_writers: dict[str, str]) -> None:
        super().__init__(formats, tag_writers)
        self._is_strict = is_strict

    def message(self, struct: Struct) -> str:
        """Return the body of ``def encode(message, out) -> None``."""
        write = self._lines
        write("put = out.append")
        with write.indented("try:"):
            self._struct(struct, "message", "out")
        with write.indented("except UNENCODABLE as error:"):
            write(f'raise unencodable("{struct.name}", error) from error')
        return write.text()

    def tag_section(self, struct: Struct) -> str:
        """Return the body of ``def tags(target, out) -> None``.

        It writes the tag section of a struct with known tags.
        """
        write = self._lines
        write("tags = list(target.unknown_tags)")
        write("section: list[Sized]")
        for field in struct.tagged:
            with write.indented(f"if {_is_set(field, f'target.{field.name}')}:"):
                write("section = []")
                write("put = section.append")
                self._field(struct, field, "target", "section")
                self._flush()
                write(f"tags.append(({field.tag}, join_section(section)))")
        write("write_tags(out, tags)")
        return write.text()

    def _struct(self, struct: Struct, source: str, out: str) -> None:
        write = self._lines
        for name, default in struct.required:
            with write.indented(f"if {_differs(f'{source}.{name}', default)}:"):
                write(f'missing_field("{struct.name}.{name}")')
        for field in struct.untagged:
            self._field(struct, field, source, out)
        if not struct.flexible:
            self._flush()
            if self._is_strict:
                with write.indented(f"if {source}.unknown_tags:"):
                    write(f'missing_field("{struct.name}.unknown_tags")')
            return
        self._run.append(("", "x"))
        self._flush()
        if struct.tagged:
            tests = [_differs(f"{source}.{field.name}", field.default) for field in struct.tagged]
            self._condition([*tests, f"{source}.unknown_tags"])
            write(f"    {self._tag_functions[struct.name]}({source}, {out})")
        else:
            with write.indented(f"if {source}.unknown_tags:"):
                write(f"write_tags({out}, {source}.unknown_tags)")

    def _condition(self, tests: list[str]) -> None:
        if sum(map(len, tests)) < WIDTH // 2:
            self._lines(f"if {' or '.join(tests)}:")
            return
        self._lines("if (")
        for index, test in enumerate(tests):
            self._lines(f"    {'or ' if index else ''}{test}")
        self._lines("):")

    def _field(self, owner: Struct, field: Field, source: str, out: str) -> None:
        value = f"{source}.{field.name}"
        if field.name in owner.sometimes_null and not field.nullable:
            value = self._local(field.name, value)
            with self._lines.indented(f"if {value} is None:"):
                self._lines(f'null_field("{owner.name}.{field.name}")')
        if field.array:
            self._array(owner.flexible, field, value, out)
        elif field.kind == "uuid":
            with self._lines.indented(f"if len({value}) != 16:"):
                self._lines(f'bad_uuid("{field.name}")')
            self._run.append((value, "16s"))
        elif field.kind in CODES:
            self._run.append((value, CODES[field.kind]))
        elif field.struct is not None:
            self._nested(field, field.struct, value, out)
        else:
            self._sized(owner.flexible, field, value)

    def _nested(self, field: Field, struct: Struct, value: str, out: str) -> None:
        if field.tag is not None or not field.nullable:
            self._flush()
            self._struct(struct, self._local(struct.name, value), out)
            return
        inner = self._local(struct.name, value)
        self._run.append((f"-1 if {inner} is None else 1", "b"))
        self._flush()
        with self._lines.indented(f"if {inner} is not None:"):
            self._struct(struct, inner, out)

    def _local(self, wanted: str, value: str) -> str:
        name = self._name(wanted)
        self._lines(f"{name} = {value}")
        return name

    def _length(self, flexible: bool, prefix: str, text: str = "") -> None:
        """Write the pending run and ``n``, a length or count.

        Args:
            flexible: whether it is compact.
            prefix: the format of one that is not compact.
            text: the name of a text field.
        """
        if any(code[0] == "n" for _, code in self._run):
            self._flush()
        if not flexible:
            self._run.append(("n", prefix))
            self._flush()
            return
        values = [value for value, _ in self._run]
        codes = "".join(code for _, code in self._run)
        self._run = []
        compact = f'text_size(n, "{text}")' if text else "varint(n)"
        if not codes:
            self._lines(f"put(BYTES[n] if n < 128 else {compact})")
            return
        short = f"{self._formats.writer(codes + 'B')}({', '.join([*values, 'n'])})"
        long = f"{self._formats.writer(codes)}({', '.join(values)}) + {compact}"
        if len(short) + len(long) < WIDTH - 44:
            self._lines(f"put({short} if n < 128 else {long})")
            return
        with self._lines.indented("if n < 128:"):
            self._lines(f"put({short})")
        with self._lines.indented("else:"):
            self._lines(f"put({self._formats.writer(codes)}({', '.join(values)}))")
            self._lines(f"put({compact})")

    def _sized(self, flexible: bool, field: Field, value: str) -> None:
        write = self._lines
        length = "len(raw) + 1" if flexible else "len(raw)"
        encode = ".encode()" if field.kind == "string" else ""
        raw = "records" if field.kind == "records" else "raw"
        length = length.replace("raw", raw)
        if field.nullable:
            local = "text" if field.kind == "string" else "data"
            if field.kind == "records":
                write(f"records = {value}")
                write(f"n = {0 if flexible else -1} if records is None else {length}")
            else:
                write(f"{local} = {value}")
                write(f'raw = b"" if {local} is None else {local}{encode}')
                write(f"n = {0 if flexible else -1} if {local} is None else {length}")
        else:
            write(f"{raw} = {value}{encode}")
            write(f"n = {length}")
        is_text = field.kind == "string"
        self._length(flexible, "h" if is_text else "i", field.name if is_text else "")
        if field.kind == "records" and field.nullable:
            with write.indented("if records is not None:"):
                write("put(records)")
        else:
            write(f"put({raw})")

    def _array(self, flexible: bool, field: Field, value: str, out: str) -> None:
        write = self._lines
        items = self._local(field.name, value) if "." in value else value
        if field.kind in CODES:
            self._numbers(flexible, field, items)
            return
        length = f"len({items}) + 1" if flexible else f"len({items})"
        if field.nullable:
            length = f"{0 if flexible else -1} if {items} is None else {length}"
        write(f"n = {length}")
        self._length(flexible, "i")
        every = f"{items} or ()" if field.nullable else items
        if field.struct is not None:
            item = self._name(field.struct.name)
            with write.indented(f"for {item} in {every}:"):
                self._struct(field.struct, item, out)
        else:
            with write.indented(f"for item in {every}:"):
                is_text = field.kind == "string"
                write("raw = item.encode()" if is_text else "raw = item")
                write("n = len(raw) + 1" if flexible else "n = len(raw)")
                self._length(flexible, "h" if is_text else "i", field.name if is_text else "")
                write("put(raw)")

    def _numbers(self, flexible: bool, field: Field, items: str) -> None:
        """Add the count and the numbers to the pending run."""
        if sum(code[0] == "n" for _, code in self._run) == ARRAYS_TOGETHER_MAX:
            self._flush()
        count = self._name(f"{field.name}_n")
        length = f"len({items}) + 1" if flexible else f"len({items})"
        if field.nullable:
            length = f"{0 if flexible else -1} if {items} is None else {length}"
            items = f"({items} or ())"
        self._lines(f"{count} = {length}")
        self._run += [(count, "B" if flexible else "i"), (f"*{items}", f"n{CODES[field.kind]}")]

    def _flush(self) -> None:
        run = self._run
        self._run = []
        counts = [run[i - 1][0] for i, (_, code) in enumerate(run) if code[0] == "n"]
        if not counts:
            self._put(run)
            return
        values = [value for value, code in run if code != "x"]
        writer = self._formats.array_writer("".join(code for _, code in run))
        key = ", ".join(counts)
        with self._lines.indented(f"if {' and '.join(f'{count} < 128' for count in counts)}:"):
            self._lines(f"put({writer}[{key}]({', '.join(values)}))")
        with self._lines.indented("else:"):
            self._flush_many(run)

    def _flush_many(self, run: list[tuple[str, str]]) -> None:
        """Write the parts of a run with arrays separately; their counts may have several bytes."""
        fixed: list[tuple[str, str]] = []
        for value, code in run:
            if code[0] != "n":
                fixed.append((value, code))
                continue
            count = fixed[-1]
            if count[1] == "B":
                self._put(fixed[:-1])
                self._lines(f"put(varint({count[0]}))")
            else:
                self._put(fixed)
            self._lines(f'put(join_array("{code[1]}", {value[1:]}))')
            fixed = []
        self._put(fixed)

    def _put(self, run: list[tuple[str, str]]) -> None:
        """Write fixed-size fields."""
        values = [value for value, code in run if code != "x"]
        codes = "".join(code for _, code in run)
        if codes == "x":
            self._lines('put(b"\\0")')
        elif codes:
            self._lines(f"put({self._formats.writer(codes)}({', '.join(values)}))")


def _is_set(field: Field, value: str) -> str:
    """Return the test of whether a tagged field differs from its default, and is written."""
    if field.struct is not None and not field.array:
        return f"{value} is not None and {value} != {field.struct.name}()"
    return _differs(value, field.default)


def _differs(value: str, default: str) -> str:
    if default == "None":
        return f"{value} is not None"
    if default in {"[]", "False", '""', 'b""'}:
        return value
    return f"{value} != {default}"
