"""The Hindsight API as pure values."""
