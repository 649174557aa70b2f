"""The ``trionet`` command. ``main`` holds the registry of subcommands and imports only the one run."""
