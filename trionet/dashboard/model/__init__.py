"""The dashboard's data as rows, rates and histories. Pure: no I/O, and time is a parameter."""
