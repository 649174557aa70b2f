"""Completion scripts for bash, fish and zsh, generated from the parsers."""
