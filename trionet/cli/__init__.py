"""The ``trionet`` command.

:mod:`trionet.cli.main` lists the subcommands and imports only the chosen one. Each noun, such as
``topics``, is a module or a folder of this package with a table of its verbs.

trio, the clients, the broker, the dashboard and rich are imported inside the functions that need
them. ``--help`` and shell completion build the parsers of all commands and must not load the code
that runs the commands. Tests enforce this.
"""
