"""How an admin call is made: arguments, the node to ask, retries, results."""
