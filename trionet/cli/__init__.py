"""The ``trionet`` command.

:mod:`trionet.cli.main` has the registry of all commands and imports only the chosen one. A command
such as ``topics`` is a module or subpackage; its subcommands are functions with decorators, which
declare their arguments.

trio, the clients, the broker, the dashboard and rich are imported inside the functions that need
them. Building the parsers, for ``--help`` or shell completion, must not load the code that runs the
commands. Tests enforce this.
"""
