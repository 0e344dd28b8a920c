"""Talking to a server: the two clients, and below them retries, breaker and the one seam to the network."""

from __future__ import annotations

from bankclient.client.aio.client import AsyncBankClient
from bankclient.client.sync.client import BankClient

__all__ = ["AsyncBankClient", "BankClient"]
