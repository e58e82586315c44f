/**
 * Clients that scan, one after the other, until SIGTERM, in a process of their own: `node scan-clients.ts
 * <url> <merchant's token> <auditor's token>`. With the url `none` it only takes as much of the processor.
 * Prints how many scans of each kind came to their end.
 */

const [url = 'none', merchant = '', auditor = ''] = process.argv.slice(2);

const request = (path: string, token: string, accept: string): Promise<Response> =>
  fetch(url + path, { headers: { authorization: `Bearer ${token}`, accept } });

/** Reads a response of any length to its end. */
const ended = async (response: Response): Promise<boolean> => {
  const reader = response.body?.getReader();
  while (reader !== undefined && !(await reader.read()).done);
  return response.status === 200;
};

const JSON_TYPE = 'application/json';

/** Every page of a list, by its cursor. */
const pages = async (path: string, token: string, next: 'nextCursor' | 'next') => {
  let cursor: string | null | undefined = '';
  while (typeof cursor === 'string') {
    const more: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const response = await request(path + more, token, JSON_TYPE);
    if (response.status !== 200) return false;
    cursor = ((await response.json()) as Record<string, string | null | undefined>)[next];
  }
  return true;
};

/** Every page of the log, as large as they come. */
const log = async (): Promise<boolean> => {
  for (let from = 'start'; ; ) {
    const response = await request(`/audit/v1/events?limit=1000&from=${from}`, auditor, JSON_TYPE);
    if (response.status !== 200) return false;
    const { next, atEnd } = (await response.json()) as { next: string; atEnd: boolean };
    if (atEnd) return true;
    from = next;
  }
};

const scans: Record<string, () => Promise<boolean>> = {
  list: () => pages('/api/v1/payments?status=VOIDED', merchant, 'nextCursor'),
  search: () => pages('/audit/v1/payments?minAmount=999999', auditor, 'next'),
  log,
  verify: async () => ended(await request('/audit/v1/verify', auditor, JSON_TYPE)),
  export: async () => ended(await request('/audit/v1/events', auditor, 'application/x-ndjson')),
};

const counts = Object.fromEntries(Object.keys(scans).map((kind) => [kind, 0]));
process.on('SIGTERM', () => {
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  process.exit(0);
});

/** Until the service is gone. */
const forever = async (kind: string, scan: () => Promise<boolean>): Promise<void> => {
  try {
    for (;;) if (await scan()) counts[kind] = (counts[kind] ?? 0) + 1;
  } catch {
    process.exitCode = 1;
  }
};
if (url === 'none') {
  for (;;) {
    const until = performance.now() + 5;
    while (performance.now() < until);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
await Promise.all(Object.entries(scans).map(([kind, scan]) => forever(kind, scan)));
