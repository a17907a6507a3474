"""Finding books by words from their titles and authors."""

from collections.abc import Iterable

from shelf.books import Book
from shelf.errors import ShelfError
from shelf.words import fold, words


def search(books: Iterable[Book], query: str) -> list[Book]:
    """The books in whose title or author every word of the query begins a word, best matches first.

    A book that has more of the words in its title stands before one that has them in its author; otherwise the given
    order stays. Raises ShelfError for a query without a word.
    """
    wanted = words(query)
    if not wanted:
        raise ShelfError("say at least one word to look for")
    found = [(book, _title_hits(book, wanted)) for book in books if _fits(book, wanted)]
    return [book for book, _ in sorted(found, key=lambda pair: -pair[1])]


def _begins(word: str, text: str) -> bool:
    return any(candidate.startswith(word) for candidate in words(text))


def _fits(book: Book, wanted: list[str]) -> bool:
    if book.isbn and fold("".join(wanted)) == book.isbn:
        return True
    return all(_begins(word, f"{book.title} {book.author}") for word in wanted)


def _title_hits(book: Book, wanted: list[str]) -> int:
    return sum(_begins(word, book.title) for word in wanted)
