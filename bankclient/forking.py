"""What an object does around a fork of its process, registered so that the object is not kept alive by it.

It owns the weak registration and nothing else; what must happen is the object's business.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["around_fork"]


def around_fork(*, before: Callable[[], None], in_parent: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Have these bound methods called before a fork and after it in parent and child, while their object lives."""
    os.register_at_fork(before=_weakly(before), after_in_parent=_weakly(in_parent), after_in_child=_weakly(in_child))


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    weak = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := weak()) is not None:
            alive()

    return call
