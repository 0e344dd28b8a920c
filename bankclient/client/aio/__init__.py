"""The async client, from which the sync one is made."""
