"""The dashboard's data as rows, rates and histories; performs no I/O, and time is a parameter."""
