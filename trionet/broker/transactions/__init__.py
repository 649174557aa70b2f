"""Transactions: the state of transactional ids, and the end of transactions in the logs."""
