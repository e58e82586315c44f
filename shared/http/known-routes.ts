/**
 * Which methods an address knows, so that another method is 405 with `Allow` and not 404
 * (decisions §1). The router itself only knows whether method and address fit together.
 */
import type { FastifyInstance } from 'fastify';

type Known = { pattern: RegExp; methods: Set<string> };

const patternOf = (template: string): RegExp => {
  const parts = template.split('/').map((part) => {
    if (part.startsWith(':')) return '[^/]*';
    return part === '*' ? '.*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${parts.join('/')}$`);
};

const pathOf = (url: string): string => url.split(/[?#]/, 1)[0] ?? '';

/**
 * Writes down every route that is registered from now on; call it before the first. Hands back
 * what tells the methods of an address, empty when no route has it.
 */
export const watchRoutes = (app: FastifyInstance): ((url: string) => string[]) => {
  const known = new Map<string, Known>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = known.get(url) ?? { pattern: patternOf(url), methods: new Set() };
    for (const one of [method].flat()) route.methods.add(one);
    known.set(url, route);
  });
  return (url) => {
    const path = pathOf(url);
    const fitting = [...known.values()].filter(({ pattern }) => pattern.test(path));
    return [...new Set(fitting.flatMap(({ methods }) => [...methods]))].sort();
  };
};
