import Link from 'next/link';
import { notFound } from 'next/navigation';
import { db } from '@/lib/db';

export const revalidate = 60;

type PageProps = { params: Promise<{ slug: string }> };

export async function generateStaticParams(): Promise<{ slug: string }[]> {
  const rows = await db.post.findMany({ select: { slug: true } });
  return rows.map(({ slug }) => ({ slug }));
}

function Price<T extends number | bigint>({ cents }: { cents: T }) {
  const text = new Intl.NumberFormat('en', { style: 'currency', currency: 'EUR' });
  return <strong>{text.format(Number(cents) / 100)}</strong>;
}

export default async function Page({ params }: PageProps) {
  const { slug } = await params;
  const post = await db.post.findUnique({ where: { slug }, include: { tags: true } });
  if (post === null) {
    notFound();
  }
  return (
    <article>
      <header>
        <h1>{post.title}</h1>
        <time dateTime={post.date.toISOString()}>{post.date.toLocaleDateString()}</time>
      </header>
      <Price cents={post.cents} />
      <div dangerouslySetInnerHTML={{ __html: post.html }} />
      <footer>
        {post.tags.length > 0 ? (
          post.tags.map((tag) => (
            <Link key={tag.id} href={`/tags/${tag.name}`}>
              #{tag.name}
            </Link>
          ))
        ) : (
          <em>no tags</em>
        )}
      </footer>
    </article>
  );
}
