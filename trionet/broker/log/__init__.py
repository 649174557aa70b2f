"""The broker's log, in Kafka's on-disk format, with one folder per partition.

======================= =====================================================================
:class:`LogFolder`      the data folder: lock, identity, checkpoints, all partitions' logs
:class:`Log`            the log of one partition: append, read, flush, retention
:class:`LogConfig`      the settings of a topic that apply to its logs
:class:`Directory`      the file system, or memory, that stores them
======================= =====================================================================
"""

from .assignment import Appended
from .config import LogConfig
from .directory import Directory, FolderDirectory, LogFile
from .log import Log
from .log_folder import LogFolder, open_log_folder
from .memory_directory import MemoryDirectory
from .reading import LogRead
from .recovery import LastShutdown
from .timestamps import OffsetAndTimestamp

__all__ = [
    "Appended",
    "Directory",
    "FolderDirectory",
    "LastShutdown",
    "Log",
    "LogConfig",
    "LogFile",
    "LogFolder",
    "LogRead",
    "MemoryDirectory",
    "OffsetAndTimestamp",
    "open_log_folder",
]
