"""The user interface: state, views, commands, sorting, filtering and the screen. Pure."""
