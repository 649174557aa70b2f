"""The ``trionet`` command.

:mod:`trionet.cli.main` lists the subcommands and imports only the chosen one. Each noun, such as
``topics``, is a module or subpackage with a table of its verbs.

trio, the clients, the broker, the dashboard and rich are imported inside the functions that need
them. Building the parsers, for ``--help`` or shell completion, must not load the code that runs the
commands. Tests enforce this.
"""
