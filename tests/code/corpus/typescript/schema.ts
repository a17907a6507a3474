import { z } from 'zod';

declare global {
  interface Window {
    settings?: Settings;
  }
}

export const Settings = z.object({
  theme: z.enum(['light', 'dark']).default('light'),
  pageSize: z.number().int().min(5).max(100),
  languages: z.array(z.string().length(2)).nonempty(),
});

export type Settings = z.infer<typeof Settings>;
export type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

function assertNever(value: never): never {
  throw new Error(`unexpected ${String(value)}`);
}

export function label(theme: Settings['theme']): string {
  switch (theme) {
    case 'light':
      return 'Day';
    case 'dark':
      return 'Night';
    default:
      return assertNever(theme);
  }
}

export function parse(text: string): Settings | undefined {
  const result = Settings.safeParse(JSON.parse(text));
  if (result.success) {
    return result.data satisfies Settings;
  }
  console.warn(result.error.issues.map((issue) => issue.message).join(', '));
  return undefined;
}

export const defaults: DeepReadonly<Settings> = {
  theme: 'light',
  pageSize: 20,
  languages: ['en'],
};
