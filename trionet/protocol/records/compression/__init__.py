"""The compression codecs gzip, snappy, lz4 and zstd, with bounded decompression."""
