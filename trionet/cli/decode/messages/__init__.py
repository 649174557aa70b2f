"""Messages, record batches and message sets as trees of plain values."""
