"""Where the dashboard's data comes from: a broker in this process, metrics listeners, a cluster."""
