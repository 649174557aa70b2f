"""The user interface: state, views, commands, sorting, filtering and drawing; performs no I/O."""
