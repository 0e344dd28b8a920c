"""`bankclient serve`: the embedded bank on loopback, for any other Hindsight client."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Annotated

import typer

from bankclient.cli import options, output
from bankclient.cli.place import find_place
from bankclient.cli.stopping import stoppable
from bankclient.client.setup import set_up
from bankclient.embedded.serving import BankServer
from bankclient.errors import ConfigError

__all__ = ["app", "serve"]

app = options.new_app()
_HOSTS = ("127.0.0.1", "::1")


def _loopback(host: str) -> str:
    if host not in _HOSTS:
        raise typer.BadParameter(
            f"{host!r} could be reached from other machines, and nothing asks for a key here; "
            f"use {' or '.join(_HOSTS)}, and a tunnel (ssh -L) from elsewhere"
        )
    return host


@app.command()
def serve(
    *,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Where to listen; 0 is any free port.")
    ] = 8888,
    host: Annotated[
        str, typer.Option("--host", metavar="|".join(_HOSTS), callback=_loopback, help="The loopback address.")
    ] = _HOSTS[0],
) -> None:
    """Answer the Hindsight API on this machine from the embedded bank, until Ctrl-C or SIGTERM.

    It prints its URL once it answers. The bank is the one that HINDSIGHT_API_URL=embedded means: both may be used at
    the same time. There is no key, so it listens on loopback only and answers no web page.
    """
    place = find_place()
    place.warn()
    if place.disabled:
        raise ConfigError(f"{place.disabled}, and nothing was started; take that away to switch it on")
    setup = set_up(settings=place.settings, folder=None, flags={}, degrade=False, breaker=None)
    server = BankServer(setup.bank_file, host=host, port=port)
    with stoppable():
        try:
            with suppress(KeyboardInterrupt, SystemExit):
                server.start()
                output.show_text(f"the embedded bank answers at {server.url}")
                sys.stdout.flush()
                server.wait()
        finally:
            ended = server.stop()
    if not ended:
        # A request takes longer than an end may: left to itself its thread would hold the process for as long.
        os._exit(0)
