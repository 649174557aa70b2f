"""Bytes on a connection: endpoints, sockets, readiness, transports, frames, Sends, memory."""
