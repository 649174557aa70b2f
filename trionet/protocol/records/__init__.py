"""Record batches (message format 2): headers, checksums, records and compression."""
