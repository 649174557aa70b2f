"""How a client proves who it is, and makes sure whom it talks to."""
