"""The clients that commands open: connection options, admin sessions, why a cluster could not be reached."""
