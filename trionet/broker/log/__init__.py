"""The broker's log: Kafka's on-disk format, one folder per partition.

======================= =====================================================================
:class:`LogFolder`      the data folder: lock, identity, checkpoints, all partitions' logs
:class:`Log`            one partition: append, read, flush, retention
:class:`LogConfig`      the settings of a topic that its logs obey
:class:`Directory`      the file system, or memory, behind all of it
======================= =====================================================================
"""

from ._log import Log
from ._offset_assignment import Appended
from .files._directory import Directory, FolderDirectory, LogFile
from .files._memory_directory import MemoryDirectory
from .folder._log_folder import LogFolder, open_log_folder
from .recovery._log_loader import Stop
from .segments._log_config import LogConfig
from .segments._reading import LogRead
from .segments._timestamps import OffsetAndTimestamp

__all__ = [
    "Appended",
    "Directory",
    "FolderDirectory",
    "Log",
    "LogConfig",
    "LogFile",
    "LogFolder",
    "LogRead",
    "MemoryDirectory",
    "OffsetAndTimestamp",
    "Stop",
    "open_log_folder",
]
