"""The machinery of admin calls: arguments, node lookup, retries and results."""
