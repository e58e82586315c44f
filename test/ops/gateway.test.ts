/** ops/Caddyfile and ops/prometheus.yml agree with the processes of docker-compose.yml. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { isOfMerchants } from '../../shared/http/auth/tokens.ts';
import { errorBody, helpLink, JSON_TYPE, RETRY_AFTER_SECONDS } from '../../shared/http/errors.ts';
import { ROUTES, type Service, SIGNED } from '../../shared/http/route-table.ts';
import { ROOT } from '../support/service-processes.ts';

const fileText = (name: string): string => readFileSync(join(ROOT, name), 'utf8');
const caddyfile = fileText('ops/Caddyfile');
const { services } = parse(fileText('docker-compose.yml'), { merge: true });
const PROCESSES = ['command-api', 'query-api', 'projector'];
const addresses = PROCESSES.map((name) => `${name}:${services[name].environment.PORT}`).sort();

/** The routes in the order in which the gateway tries them: the process of each, and its time to respond. */
const routes = [...caddyfile.matchAll(/^\thandle( \S+)? \{\n((?:\t\t.*\n)*)\t\}/gm)].map(
  ([, matcher = '', body = '']) => {
    const [, process, wait] = /import to (\S+) \d+ (\d+s)$/m.exec(body) ?? [];
    return { matcher: matcher.trim(), process, wait };
  },
);

/** `@name path /a /b/*` or `@name method GET`, by name. */
const matchers = new Map(
  [...caddyfile.matchAll(/^\t@(\S+) (path|method) (.+)$/gm)].map(([, name, kind, values = '']) => [
    `@${name}`,
    { kind, values: values.split(' ') },
  ]),
);

test('docs/containers.md names each address that the gateway takes apart', () => {
  const page = fileText('docs/containers.md').split('## What the gateway does')[1] ?? '';
  const paths = [...matchers.values()].flatMap(({ kind, values }) =>
    kind === 'path' ? values : [],
  );
  const shown = paths.map((path) => path.replace(/\/\*$/, '').replace('*', '…'));
  expect(shown.length).toBeGreaterThan(8);
  expect(shown.filter((path) => !page.includes(`\`${path}`))).toEqual([]);
});

const fits = (matcher: string, method: string, path: string): boolean => {
  const isAt = (value: string): boolean =>
    value.endsWith('*')
      ? path.startsWith(value.slice(0, -1))
      : new RegExp(`^${value.replace('*', '[^/]*')}$`).test(path);
  if (matcher === '') return true;
  const named = matchers.get(matcher);
  if (named === undefined) return isAt(matcher);
  return named.kind === 'method' ? named.values.includes(method) : named.values.some(isAt);
};

const routeOf = (method: string, path: string) =>
  routes.find(({ matcher }) => fits(matcher, method, path.replace(/:\w+/, 'x')));

/** The process of each service in the three-process mode (ADR-0014). */
const PROCESS_OF: Readonly<Record<Service, string>> = {
  'command-api': 'command-api',
  'query-api': 'query-api',
  audit: 'query-api',
  projector: 'projector',
};

test.each<[method: string, path: string, service: Service]>(
  Object.values(ROUTES).map(({ method, path, service }) => [method, path, service]),
)('%s %s goes to the process of %s, as the table of routes says', (method, path, service) => {
  expect(routeOf(method, path)?.process).toBe(PROCESS_OF[service]);
  if (method === 'GET') expect(routeOf('HEAD', path)).toBe(routeOf('GET', path));
});

test('gaps §11: a payment has longer than its budget; what reads the whole log has five minutes', () => {
  const waits = Object.values(ROUTES).map(({ method, path, scope }) => {
    const isWhole = scope !== SIGNED && !isOfMerchants(scope);
    return { path, isWhole, wait: routeOf(method, path)?.wait };
  });
  expect(waits).toEqual(
    waits.map(({ path, isWhole }) => ({ path, isWhole, wait: isWhole ? '300s' : '35s' })),
  );
  expect(caddyfile).toContain('\t\t\tresponse_header_timeout {args[2]}\n');
});

test('metrics do not pass the gateway: the address is an unknown one there', () => {
  expect(caddyfile).toContain(
    'handle /metrics {\n\t\trewrite * /nothing-here\n\t\timport to command-api 8081 35s\n',
  );
  expect(Object.values(ROUTES).some(({ path }) => path.startsWith('/nothing-here'))).toBe(false);
});

test('every address behind the gateway is the address of a process', () => {
  const named = [
    ...[...caddyfile.matchAll(/import to (\S+) (\d+)/g)].map(([, host, port]) => `${host}:${port}`),
    ...[...caddyfile.matchAll(/forward_auth (\S+)/g)].map(([, address]) => String(address)),
  ];
  expect([...new Set(named)].sort()).toEqual(addresses);
});

test('surfaces: the gateway is live for GET and HEAD alone, with the headers of every response', () => {
  expect(caddyfile).toContain('\t@live {\n\t\tpath /health/live\n\t\tmethod GET HEAD\n\t}');
  const [, live = ''] = /handle @live \{\n((?:\t\t.*\n)*)\t\}/.exec(caddyfile) ?? [];
  for (const header of [
    `Content-Type "${JSON_TYPE}"`,
    'Cache-Control no-store',
    'Request-Id {http.request.uuid}',
    'X-Content-Type-Options nosniff',
  ]) {
    expect(live).toContain(`\t\t\t${header}\n`);
  }
});

test('the gateway is ready when all three processes are', () => {
  const [, ready = ''] = /handle \/health\/ready \{\n((?:\t\t.*\n)*)\t\}/.exec(caddyfile) ?? [];
  for (const address of ['projector:8083', 'query-api:8082']) {
    expect(ready).toContain(`forward_auth ${address} {\n\t\t\turi /health/ready`);
  }
});

test('A3: a request that reaches no process gets the body of every other 503', () => {
  const at = '2026-11-21T12:00:00.000Z';
  const bodies = [...caddyfile.matchAll(/^\t\trespond .*?`(.*)` 503$/gm)].map(([, body = '']) =>
    body.replace(/\{\{now\.UTC\.Format .*?\}\}/, at),
  );
  expect(bodies).toEqual([
    errorBody('SERVICE_UNAVAILABLE', ['it is not known whether anything was stored'], at),
    errorBody('SERVICE_UNAVAILABLE', [], at),
  ]);
  for (const header of [
    `Content-Type "${JSON_TYPE}"`,
    'Cache-Control no-store',
    `Retry-After ${RETRY_AFTER_SECONDS}`,
    'Request-Id ',
    `Link "${helpLink('SERVICE_UNAVAILABLE').replaceAll('"', '\\"')}"`,
  ]) {
    expect(caddyfile).toContain(`\t\t\t${header}`);
  }
});

test('gaps §7: its own 503 to a POST of a payment is NOT_CHARGED where nothing was sent and no key was given', () => {
  const matcherOf = (name: string): string[] =>
    (new RegExp(`\t@${name} \\{\n((?:.*\n)*?)\t\t\\}`).exec(caddyfile)?.[1] ?? '')
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  const paths = 'path /api/v1/payments /api/v1/payments/*';
  expect(matcherOf('payments')).toEqual(['method POST', paths]);
  expect(matcherOf('uncharged')).toEqual([
    'method POST',
    paths,
    'not header Idempotency-Key *',
    'vars_regexp {err.message} "dial|lookup|no upstreams"',
  ]);
  expect(caddyfile).toContain('\t\theader @uncharged Payment-Outcome NOT_CHARGED\n');
  expect(caddyfile).toContain('\t\theader @payments ?Payment-Outcome UNKNOWN\n');
});

test('gaps §1: no response names the server of the gateway', () => {
  expect(caddyfile).toContain('\theader {\n\t\t-Server\n\t\t-Via\n\t}');
  expect(caddyfile).toContain('handle_errors {\n\t\theader -Server');
});

test('Prometheus scrapes every process', () => {
  const scraped = parse(fileText('ops/prometheus.yml')).scrape_configs.flatMap(
    ({ dns_sd_configs }: { dns_sd_configs: { names: string[]; port: number }[] }) =>
      dns_sd_configs.flatMap(({ names, port }) => names.map((name) => `${name}:${port}`)),
  );
  expect(scraped.sort()).toEqual(addresses);
});
