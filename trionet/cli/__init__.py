"""The ``trionet`` command: ``main`` lists the subcommands and imports only the one to run."""
