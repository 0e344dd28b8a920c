"""Talking to a server: the only floor that knows the network."""
