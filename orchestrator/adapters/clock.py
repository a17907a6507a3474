"""The one clock."""

from datetime import UTC, datetime


class SystemClock:
    """`ports.Clock` on the machine's time."""

    def now(self) -> datetime:
        """Aware UTC."""
        return datetime.now(UTC)
