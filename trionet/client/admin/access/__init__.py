"""Access control: ACLs, quotas, SCRAM credentials, delegation tokens."""
