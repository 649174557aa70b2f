"""Command-line arguments: the parser, subcommands, and values such as times and partitions."""
