"""Topics, partitions and their configs."""
