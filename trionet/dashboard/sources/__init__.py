"""The data sources of the dashboard: a broker in this process, metrics listeners, a cluster."""
