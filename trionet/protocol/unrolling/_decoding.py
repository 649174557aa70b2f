"""The source of decoders: one function per message, with its structs and arrays inlined.

A run of fixed-size fields is read by one ``Struct``, together with the length, array count or tag
count that follows it. Slices never fail, but positions only increase, so one comparison at the end
detects every overrun.

``left`` is the number of elements that may still be decoded. An array takes one, plus one for each
element, and a tag takes one. Since each of them takes at least one byte of the frame, ``left`` is
also bounded by the size of the frame, so one comparison per array checks both limits.
"""

from __future__ import annotations

from ._layout import CODES, Field, Struct
from ._source import Function, width_of


class Decoder(Function):
    """Writes the source of one function: the decoder of a message, or of a tag section."""

    def message(self, struct: Struct) -> str:
        """Return the body of ``def decode(buf, pos, left) -> message``."""
        write = self._lines
        if _has_records(struct):
            write("view = memoryview(buf)")
        write("size = len(buf)")
        if _has_arrays(struct):
            with write.indented("if left > size:"):
                write("left = size")
        with write.indented("try:"):
            self._struct(struct, "message")
        with write.indented("except MALFORMED as error:"):
            write(f'raise malformed("{struct.name}", error) from error')
        # A read past the end shows only here, since slices do not raise. Bytes after the message
        # are ignored, as in Kafka: librdkafka 2.16 sends three of them with Metadata.
        with write.indented("if pos > size:"):
            write(f'raise bad_end("{struct.name}", pos - size)')
        write("return message")
        return write.text()

    def tag_section(self, struct: Struct) -> str:
        """Return the body of ``def tags(target, buf, pos, count, left) -> (pos, left)``.

        It reads the tag section of a struct with known tags.
        """
        write = self._lines
        if any(field.struct and _has_records(field.struct) for field in struct.tagged):
            write("view = memoryview(buf)")
        write("size = len(buf)")
        write("count, pos, left = tag_count(buf, pos, count, left)")
        write("tag = -1")
        write("unknown: list[tuple[int, bytes]] = []")
        with write.indented("for _ in range(count):"):
            write("tag, end, pos = tag_head(buf, pos, tag)")
            for index, field in enumerate(struct.tagged):
                word = "elif" if index else "if"
                with write.indented(f"{word} tag == {field.tag}:"):
                    self._field(struct, field, "target")
                    self._flush()
                    with write.indented("if pos != end:"):
                        write(f'raise bad_tag("{struct.name}.{field.name}")')
            with write.indented("else:"):
                write("unknown.append((tag, bytes(buf[pos:end])))")
                write("pos = end")
        write("target.unknown_tags = tuple(unknown)")
        write("return pos, left")
        return write.text()

    def _struct(self, struct: Struct, target: str) -> None:
        write = self._lines
        write(f"{target} = new({struct.name})")
        for field in struct.untagged:
            self._field(struct, field, target)
        if struct.flexible:
            self._run.append(("k", "B"))
            self._flush()
        else:
            self._flush()
        self._defaults(struct, target)
        if not struct.flexible:
            write(f"{target}.unknown_tags = ()")
            return
        with write.indented("if k:"):
            if struct.tagged:
                write(
                    f"pos, left = {self._tag_functions[struct.name]}({target}, buf, pos, k, left)"
                )
            else:
                write(f"{target}.unknown_tags, pos, left = read_tags(buf, pos, k, left)")
        with write.indented("else:"):
            write(f"{target}.unknown_tags = ()")

    def _defaults(self, struct: Struct, target: str) -> None:
        """Set the fields that are not on the wire to their defaults; each list is a new one."""
        by_value: dict[str, list[str]] = {}
        for name, default in [*struct.absent, *((f.name, f.default) for f in struct.tagged)]:
            if default == "[]" or default.endswith("()"):
                self._lines(f"{target}.{name} = {default}")
            else:
                by_value.setdefault(default, []).append(f"{target}.{name}")
        for default, targets in by_value.items():
            step = 2 if len(max(targets, key=len)) < 32 else 1
            for start in range(0, len(targets), step):
                self._lines(" = ".join([*targets[start : start + step], default]))

    def _field(self, owner: Struct, field: Field, target: str) -> None:
        label = f"{owner.name}.{field.name}"
        place = f"{target}.{field.name}"
        if field.array:
            self._array(owner, field, place, label)
        elif field.kind in CODES:
            self._run.append((place, CODES[field.kind]))
        elif field.struct is not None:
            self._nested(field, field.struct, place, label)
        else:
            self._sized(owner.flexible, field, place, label)

    def _nested(self, field: Field, struct: Struct, place: str, label: str) -> None:
        inner = self._name(struct.name)
        if not field.nullable:
            self._flush()
            self._struct(struct, inner)
            self._lines(f"{place} = {inner}")
            return
        self._run.append(("n", "b"))  # KIP-893: one byte says whether the struct is null
        self._flush()
        with self._lines.indented("if n == 1:"):
            self._struct(struct, inner)
            self._lines(f"{place} = {inner}")
        with self._lines.indented("elif n == -1:"):
            self._lines(f"{place} = None")
        with self._lines.indented("else:"):
            self._lines(f'bad_length("{label}", n)')

    def _length(self, flexible: bool, prefix: str, label: str = "") -> None:
        """Read a length or count into ``n``; compact ones are encoded plus one.

        Args:
            flexible: whether it is compact.
            prefix: the format of one that is not compact.
            label: the name of a text field. In Kafka, compact texts are no longer than others.
        """
        self._run.append(("n", "B" if flexible else prefix))
        self._flush()
        if flexible:
            with self._lines.indented("if n > 127:"):
                if label:
                    self._lines(f'n, pos = text_length(buf, pos, n, "{label}")')
                else:
                    self._lines("n, pos = read_varint(buf, pos, n)")

    def _text_or_bytes_length(self, flexible: bool, field: Field, label: str) -> None:
        if field.kind == "string":
            self._length(flexible, "h", label)
        else:
            self._length(flexible, "i")

    def _check_null(self, flexible: bool, nullable: bool, label: str) -> None:
        if flexible and nullable:
            return
        test = "n == 0" if flexible else "n < -1" if nullable else "n < 0"
        with self._lines.indented(f"if {test}:"):
            self._lines(f'bad_length("{label}", n)')

    def _sized(self, flexible: bool, field: Field, place: str, label: str) -> None:
        self._text_or_bytes_length(flexible, field, label)
        self._check_null(flexible, field.nullable, label)
        value = _slice(field.kind, flexible)
        if field.nullable:
            value += " if n else None" if flexible else " if n >= 0 else None"
        self._lines(f"{place} = {value}")

    def _array(self, owner: Struct, field: Field, place: str, label: str) -> None:
        write = self._lines
        flexible = owner.flexible
        self._length(flexible, "i")
        self._check_null(flexible, field.nullable, label)
        if not field.nullable:
            self._elements(flexible, field, place, label)
            return
        with write.indented("if n == 0:" if flexible else "if n < 0:"):
            write(f"{place} = None")
        with write.indented("else:"):
            self._elements(flexible, field, place, label)

    def _elements(self, flexible: bool, field: Field, place: str, label: str) -> None:
        write = self._lines
        count = "n - 1" if flexible else "n"
        write(f"left -= {'n' if flexible else 'n + 1'}")
        with write.indented("if left < 0:"):
            write(f'bad_count("{label}", {count}, size - pos)')
        if field.kind in CODES:
            assert field.kind != "uuid", "no message has an array of UUIDs"
            code = CODES[field.kind]
            reader = self._formats.array_reader(code, flexible)
            write(f"{place} = [*{reader}[n](buf, pos)]")
            width = width_of(code)
            write(f"pos += {count}" if width == 1 else f"pos += {width} * ({count})")
            return
        items = self._name(field.name)
        kind = field.struct.name if field.struct else "str" if field.kind == "string" else "bytes"
        write(f"{items}: list[{kind}] = []")
        write(f"{place} = {items}")
        with write.indented(f"for _ in range({'1, n' if flexible else 'n'}):"):
            if field.struct is not None:
                item = self._name(field.struct.name)
                self._struct(field.struct, item)
                write(f"{items}.append({item})")
            else:
                self._text_or_bytes_length(flexible, field, label)
                self._check_null(flexible, False, label)
                write(f"{items}.append({_slice(field.kind, flexible)})")

    def _flush(self) -> None:
        if not self._run:
            return
        targets = [target for target, _ in self._run]
        codes = "".join(code for _, code in self._run)
        self._run = []
        if codes == "B":
            self._lines(f"{targets[0]} = buf[pos]")
        elif len(targets) == 1:
            self._lines(f"{targets[0]} = {self._formats.reader(codes)}(buf, pos)[0]")
        else:
            self._lines(f"{', '.join(targets)} = {self._formats.reader(codes)}(buf, pos)")
        self._lines(f"pos += {width_of(codes)}")


def _slice(kind: str, flexible: bool) -> str:
    source = "view" if kind == "records" else "buf"
    text = f"{source}[pos : (pos := pos + n{' - 1' if flexible else ''})]"
    if kind == "string":
        return text + ".decode()"
    return f"bytes({text})" if kind == "bytes" else text


def _has_arrays(struct: Struct) -> bool:
    """Whether the decoder of a struct reads an array outside of tag sections."""
    return any(
        field.array or (field.struct is not None and _has_arrays(field.struct))
        for field in struct.untagged
    )


def _has_records(struct: Struct) -> bool:
    return any(
        field.kind == "records" or (field.struct is not None and _has_records(field.struct))
        for field in struct.fields
    )
