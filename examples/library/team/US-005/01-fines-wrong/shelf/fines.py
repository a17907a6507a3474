"""What a late book costs."""

GRACE_DAYS = 3
CENTS_PER_DAY = 10
MOST_CENTS = 500


def fine_cents(days_late: int) -> int:
    """Cents to pay for a book that is this many days late."""
    if days_late <= GRACE_DAYS:
        return 0
    return min(MOST_CENTS, (days_late - GRACE_DAYS) * CENTS_PER_DAY)


def money(cents: int) -> str:
    """An amount as people write it, such as 0.40."""
    return f"{cents // 100}.{cents % 100:02}"
