"""E-mail addresses, checked by a package that knows every rule about them."""

from email_validator import EmailNotValidError, validate_email

from shelf.errors import ShelfError


def checked(address: str) -> str:
    """The address in its usual form. Raises ShelfError when it cannot be one."""
    try:
        return validate_email(address, check_deliverability=False).normalized
    except EmailNotValidError as error:
        raise ShelfError(f"{address} is no e-mail address: {error}") from error
