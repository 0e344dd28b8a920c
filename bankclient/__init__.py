"""bankclient."""
