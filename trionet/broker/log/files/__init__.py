"""The files of a data directory, on disk or in memory: directories, checkpoints, page cache."""
