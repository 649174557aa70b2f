"""The files of a data folder, on disk or in memory: directories, checkpoints, page cache."""
