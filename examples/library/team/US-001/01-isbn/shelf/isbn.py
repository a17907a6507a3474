"""Book numbers that check themselves (ISO 2108)."""

from shelf.errors import ShelfError


def _check_digit(first_twelve: str) -> str:
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(first_twelve))
    return str(-total % 10)


def _is_valid_ten(digits: str) -> bool:
    if not digits[:9].isdigit() or not (digits[9].isdigit() or digits[9] == "X"):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(value * (10 - place) for place, value in enumerate(values)) % 11 == 0


def normalise(text: str) -> str:
    """The thirteen digits of an ISBN; one of ten digits is brought into the newer form.

    Raises ShelfError when the digits do not fit their check digit.
    """
    digits = "".join(char for char in text.upper() if char not in "- ")
    if digits.isascii() and len(digits) == 10 and _is_valid_ten(digits):
        return f"978{digits[:9]}{_check_digit('978' + digits[:9])}"
    if digits.isascii() and digits.isdigit() and len(digits) == 13 and digits[12] == _check_digit(digits[:12]):
        return digits
    raise ShelfError(f"{text} is no ISBN: the digits do not fit the check digit")
