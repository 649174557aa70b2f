"""docs/reference/cli-admin.md has every subcommand with all its arguments."""

from __future__ import annotations

from support.cli_tables import PAGE, SECTION, section, subcommands

SECTIONS = {found["words"]: found[0] for found in SECTION.finditer(PAGE.read_text("utf-8"))}


def test_every_subcommand_has_a_section() -> None:
    assert list(subcommands()) == list(SECTIONS)


def test_a_section_is_that_of_the_parser() -> None:
    """`PYTHONPATH=.:tests .venv/bin/python -m support.cli_tables` writes them anew."""
    assert {words: section(words, parser) for words, parser in subcommands().items()} == SECTIONS
