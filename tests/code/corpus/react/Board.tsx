import { useCallback, useEffect, useMemo, useState } from 'react';
import type { FC, ReactNode } from 'react';

interface Card {
  id: number;
  title: string;
  column: 'todo' | 'doing' | 'done';
}

type Props = {
  title: string;
  children?: ReactNode;
  onMove?: (card: Card) => void;
};

const COLUMNS: ReadonlyArray<Card['column']> = ['todo', 'doing', 'done'];

export const Board: FC<Props> = ({ title, children, onMove }) => {
  const [cards, setCards] = useState<Card[]>([]);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    const abort = new AbortController();
    fetch('/api/cards', { signal: abort.signal })
      .then((response) => response.json())
      .then((found: Card[]) => setCards(found))
      .catch((reason: unknown) => setError(String(reason)));
    return () => abort.abort();
  }, []);

  const byColumn = useMemo(() => Map.groupBy(cards, (card) => card.column), [cards]);
  const move = useCallback((card: Card) => onMove?.(card), [onMove]);

  if (error) {
    return <p role="alert">It didn't load: {error}</p>;
  }
  return (
    <section className="board" aria-label={title}>
      <h1>{title}</h1>
      {COLUMNS.map((column) => (
        <ul key={column} data-column={column}>
          {(byColumn.get(column) ?? []).map((card) => (
            <li key={card.id}>
              <button type="button" onClick={() => move(card)}>
                {card.title} &rarr;
              </button>
            </li>
          ))}
        </ul>
      ))}
      {children}
    </section>
  );
};
