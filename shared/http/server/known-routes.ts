/** The methods of an address, so that another method is 405 with `Allow` and not 404 (gaps §1). */
import type { FastifyInstance } from 'fastify';
import { PAGES } from '../pages.ts';
import { ROUTES } from '../route-table.ts';

const patternOf = (template: string): RegExp => {
  const parts = template.split('/').map((part) => {
    if (part.startsWith(':')) return '[^/]*';
    return part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${parts.join('/')}$`);
};

/** All routes and pages of one base URL, as `METHOD /address`. */
export const SERVICE_ROUTES: readonly string[] = [
  ...Object.values(ROUTES).map(({ method, path }) => `${method} ${path}`),
  ...PAGES.flatMap((path) => [`GET ${path}`, `HEAD ${path}`]),
];

const pathOf = (url: string): string =>
  decodeURI(url.replace(/^https?:\/\/.*?\//, '/').split(/[?#]/, 1)[0] ?? '');

/** Call it before the first route. `elsewhere`: other processes' routes under the same base URL. */
export const watchRoutes = (
  app: FastifyInstance,
  elsewhere: readonly string[] = [],
): ((url: string) => string[]) => {
  const known: { pattern: RegExp; methods: readonly string[] }[] = [];
  const note = (url: string, methods: readonly string[]): void => {
    known.push({ pattern: patternOf(url), methods });
  };
  for (const route of elsewhere) {
    const [method = '', url = ''] = route.split(' ');
    note(url, [method]);
  }
  app.addHook('onRoute', ({ url, method }) => note(url, [method].flat()));
  return (url) => {
    const path = pathOf(url);
    const fitting = known.filter(({ pattern }) => pattern.test(path));
    return [...new Set(fitting.flatMap(({ methods }) => methods))].sort();
  };
};
