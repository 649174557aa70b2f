"""The ``trionet`` command.

:mod:`trionet.cli.main` lists the subcommands and imports only the one to run. Each noun is a module
or a folder here, with a table of its verbs.

trio, the clients, the broker, the dashboard and rich are imported inside the functions that need
them: ``--help`` and shell completion build the parsers of all commands, and must not load the code
that runs them. Tests enforce this.
"""
