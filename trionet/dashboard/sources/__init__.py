"""The sources of the dashboard's data: a broker in this process, metrics listeners, a cluster."""
