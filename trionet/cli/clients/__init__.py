"""The clients that commands open: connection options, admin sessions, connection errors."""
