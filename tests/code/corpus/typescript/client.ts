const BASE = process.env.API_URL ?? 'http://localhost:3000';

type Method = 'GET' | 'POST' | 'DELETE';
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

export class ApiError extends Error {
  constructor(
    public readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function request<T>(method: Method, path: string, body?: Json): Promise<T> {
  const response = await fetch(`${BASE}${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) {
    throw new ApiError(response.status, await response.text());
  }
  return (await response.json()) as T;
}

export interface Note {
  id: number;
  text: string;
  tags: readonly string[];
}

export const notes = {
  list: (tag?: string) => request<Note[]>('GET', tag ? `/notes?tag=${encodeURIComponent(tag)}` : '/notes'),
  add: (text: string, tags: string[] = []) => request<Note>('POST', '/notes', { text, tags }),
  remove: (id: Note['id']) => request<void>('DELETE', `/notes/${id}`),
} as const;

export function byTag(all: Note[]): Record<string, Note[]> {
  return all.reduce<Record<string, Note[]>>((found, note) => {
    for (const tag of note.tags) {
      (found[tag] ??= []).push(note);
    }
    return found;
  }, {});
}
