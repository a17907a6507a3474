-- books and who has them
CREATE TABLE IF NOT EXISTS books (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL CHECK (length(title) > 0),
  "order" INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'on shelf' CHECK (state IN ('on shelf', 'lent', 'lost'))
);

CREATE INDEX IF NOT EXISTS books_title ON books (title COLLATE NOCASE);

CREATE TABLE IF NOT EXISTS loans (
  book_id INTEGER NOT NULL REFERENCES books (id) ON DELETE CASCADE,
  reader TEXT NOT NULL,
  due DATE NOT NULL /* 21 days later */
);

INSERT INTO books (title, "order") VALUES ('It''s "here"', 1), ('C:\old\new', 2);
