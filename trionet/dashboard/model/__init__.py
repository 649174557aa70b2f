"""What the dashboard knows, as rows, rates and histories; pure: no I/O, and time is a parameter."""
