"""The connections of a client: states, addresses, and the reasons why brokers are unreachable."""
