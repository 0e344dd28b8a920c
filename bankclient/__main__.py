"""`python -m bankclient`: the same program as the `bankclient` command."""

from __future__ import annotations

import sys

from bankclient.cli import main

if __name__ == "__main__":
    sys.exit(main())
