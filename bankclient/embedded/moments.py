"""Moments in time as the server reads and writes them.

Stored as ISO 8601 text in UTC, whose order as text is the order in time. No clock here: the present is handed in.
"""

from __future__ import annotations

from datetime import MAXYEAR, MINYEAR, UTC, datetime

__all__ = ["parse_timestamp", "read_moment", "stored"]


def stored(moment: datetime) -> str:
    """Return `moment` as it is stored and shown; one without offset is UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


def read_moment(text: str) -> datetime:
    """Return an ISO 8601 text as a moment, with its offset if it has one. Raises `ValueError`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # noqa: FURB162 - so a date alone may end in Z too


def parse_timestamp(text: str) -> datetime:
    """Return the `timestamp` of a retained item. Raises `ValueError` with the server's sentence.

    Years 1 and 9999 are how exports write "since ever" and "until ever", so they are no dates.
    """
    try:
        moment = read_moment(text)
    except ValueError as error:
        raise ValueError(
            f"Invalid timestamp/event_date format: '{text}'. Expected ISO format like '2024-01-15T10:30:00' or "
            "'2024-01-15T10:30:00Z', or the special value 'unset' to store without a timestamp."
        ) from error
    if moment.year in {MINYEAR, MAXYEAR}:
        raise ValueError(
            f"timestamp year {moment.year} is a placeholder, not a date; "
            "send a real date or 'unset' to store without one."
        )
    return moment
