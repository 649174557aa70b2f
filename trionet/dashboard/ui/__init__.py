"""Keys to state, and state to frames: views, commands, sorting, filtering and the screen. Pure."""
