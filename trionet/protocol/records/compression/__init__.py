"""The codecs of batches and message sets: gzip, snappy, lz4 and zstd, with bounded output."""
