"""Record batches (message format v2): headers, checksums, records and their compression."""
