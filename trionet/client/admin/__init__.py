"""Administrating a cluster: topics, groups, settings, access and the rest."""

from __future__ import annotations

from .acl_operation import AclOperation
from .admin import Admin
from .cluster import ClusterDescription
from .opening import open_admin
from .results import Results
from .settings import AdminSettings
from .topic_descriptions import PartitionDescription, TopicDescription
from .topics import CreatedTopic, NewPartitions, NewTopic, TopicListing

__all__ = [
    "AclOperation",
    "Admin",
    "AdminSettings",
    "ClusterDescription",
    "CreatedTopic",
    "NewPartitions",
    "NewTopic",
    "PartitionDescription",
    "Results",
    "TopicDescription",
    "TopicListing",
    "open_admin",
]
