"""Reading records: the consumer, alone or as a member of a group."""
