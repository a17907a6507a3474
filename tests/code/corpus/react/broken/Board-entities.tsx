import { useCallback, useEffect, useMemo, useState } from &#x27;react&#x27;;
import type { FC, ReactNode } from &#x27;react&#x27;;

interface Card {
  id: number;
  title: string;
  column: &#x27;todo&#x27; | &#x27;doing&#x27; | &#x27;done&#x27;;
}

type Props = {
  title: string;
  children?: ReactNode;
  onMove?: (card: Card) =&gt; void;
};

const COLUMNS: ReadonlyArray&lt;Card[&#x27;column&#x27;]&gt; = [&#x27;todo&#x27;, &#x27;doing&#x27;, &#x27;done&#x27;];

export const Board: FC&lt;Props&gt; = ({ title, children, onMove }) =&gt; {
  const [cards, setCards] = useState&lt;Card[]&gt;([]);
  const [error, setError] = useState&lt;string | null&gt;(null);

  useEffect(() =&gt; {
    const abort = new AbortController();
    fetch(&#x27;/api/cards&#x27;, { signal: abort.signal })
      .then((response) =&gt; response.json())
      .then((found: Card[]) =&gt; setCards(found))
      .catch((reason: unknown) =&gt; setError(String(reason)));
    return () =&gt; abort.abort();
  }, []);

  const byColumn = useMemo(() =&gt; Map.groupBy(cards, (card) =&gt; card.column), [cards]);
  const move = useCallback((card: Card) =&gt; onMove?.(card), [onMove]);

  if (error) {
    return &lt;p role=&quot;alert&quot;&gt;It didn&#x27;t load: {error}&lt;/p&gt;;
  }
  return (
    &lt;section className=&quot;board&quot; aria-label={title}&gt;
      &lt;h1&gt;{title}&lt;/h1&gt;
      {COLUMNS.map((column) =&gt; (
        &lt;ul key={column} data-column={column}&gt;
          {(byColumn.get(column) ?? []).map((card) =&gt; (
            &lt;li key={card.id}&gt;
              &lt;button type=&quot;button&quot; onClick={() =&gt; move(card)}&gt;
                {card.title} &amp;rarr;
              &lt;/button&gt;
            &lt;/li&gt;
          ))}
        &lt;/ul&gt;
      ))}
      {children}
    &lt;/section&gt;
  );
};
