import { useEffect, useState } from "react";

export interface Book {
  id: number;
  title: string;
  tags?: string[];
}

type State = { kind: "loading" } | { kind: "ready"; books: Book[] } | { kind: "failed"; why: string };

export async function load(fetcher: typeof fetch = fetch): Promise<Book[]> {
  const reply = await fetcher("/api/books?sort=title");
  if (!reply.ok) {
    throw new Error(`books: ${reply.status} ${reply.statusText}`);
  }
  const body = (await reply.json()) as { items: Book[] };
  return body.items;
}

export function useShelf(): State {
  const [state, setState] = useState<State>({ kind: "loading" });
  useEffect(() => {
    load()
      .then((books) => setState({ kind: "ready", books }))
      .catch((error: Error) => setState({ kind: "failed", why: error.message }));
  }, []);
  return state;
}

export const label = (book: Book) => (book.tags?.length ? `${book.title} [${book.tags.join(", ")}]` : book.title);
