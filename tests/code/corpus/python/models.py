from datetime import datetime, timezone

from sqlalchemy import CheckConstraint, ForeignKey, String, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

SEARCH = """
    SELECT id, title
    FROM books
    WHERE title LIKE :pattern
"""


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "authors"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(120), unique=True)
    books: Mapped[list["Book"]] = relationship(back_populates="author", cascade="all, delete-orphan")

    def __repr__(self) -> str:
        return f"<Author {self.name}>"


class Book(Base):
    __tablename__ = "books"
    __table_args__ = (CheckConstraint("pages > 0", name="has_pages"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    pages: Mapped[int] = mapped_column(default=1)
    added: Mapped[datetime] = mapped_column(default=lambda: datetime.now(timezone.utc))
    author_id: Mapped[int] = mapped_column(ForeignKey("authors.id"))
    author: Mapped[Author] = relationship(back_populates="books")


def by_author(session: Session, name: str) -> list[Book]:
    wanted = (
        select(Book)
        .join(Author)
        .where(Author.name == name)
        .order_by(Book.title.asc())
    )
    return list(session.scalars(wanted))
