"""The files of a data folder: directories on disk or in memory, checkpoint files, the page cache."""
