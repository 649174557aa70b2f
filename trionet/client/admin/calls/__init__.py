"""The foundation of admin calls: arguments, node lookup, retries and results."""
