"""The ``trionet`` command.

:mod:`trionet.cli.main` lists the subcommands and imports only the one to run. Each noun is a module
or a folder here, with a table of its verbs.

Imports of trio, the clients, the broker, the dashboard and rich stand inside the functions that
need them: ``--help`` and shell completion build the parsers of all commands, and must not load
what runs them. Tests hold this.
"""
