"""The ``trionet`` command: a module per subcommand, and ``main``, which knows only their names."""
