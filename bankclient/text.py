"""What is text: the one rule for letters that no server, file or database would take.

Owns the cleaning of strings that came from elsewhere. Knows nothing of what the text is for.
"""

from __future__ import annotations

__all__ = ["clean_text"]


def clean_text(text: str) -> str:
    """Return `text` as the server can store it: no NUL (it strips them), lone surrogates as U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        # A pair that was split into two escapes is one letter again; what stays alone is replaced.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
