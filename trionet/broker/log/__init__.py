"""The broker's logs, in Kafka's on-disk format, with one directory per partition.

======================= =====================================================================
:class:`LogFolder`      the data directory: its lock, identity, checkpoints and partition logs
:class:`Log`            the log of one partition: append, read, flush, retention
:class:`LogConfig`      the topic settings that apply to its logs
:class:`Directory`      the file system or memory that stores the logs
======================= =====================================================================
"""

from ..._util.files._log_file import LogFile
from ._log import Log
from .files._directory import Directory, FolderDirectory
from .files._memory_directory import MemoryDirectory
from .folder._log_folder import LogFolder, open_log_folder
from .recovery._log_loader import LastShutdown
from .segments._log_config import LogConfig
from .segments._reading import LogRead, OffsetAndTimestamp
from .validation._validation import Appended

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
