# Made from the async client by .ci/sync_twin.py: change that one.
"""The async client, from which the sync one is made."""
