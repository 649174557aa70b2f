"""The APIs of settings: what can be configured, how it is, and changes."""
