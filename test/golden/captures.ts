/**
 * What the service says of a golden folder: each capture opens a copy of its own, and gives texts by
 * name. Times of the reading, and nothing else, are taken out.
 */
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Webhook } from 'standardwebhooks';
import type { Provider } from '../../providers/port.ts';
import { runCli } from '../support/cli.ts';
import { type InProcess, openInProcess, signToken, token } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { withoutAdditions } from './differences.ts';
import {
  EVERY_TYPE,
  keptHeaders,
  LOST,
  RECEIVER,
  type Recorded,
  SETTINGS,
  type Secrets,
  unpack,
  WAITS,
} from './world.ts';

/** Texts by name; a name ends in the form of its text. */
export type Captured = Map<string, string>;

export type Story = { archive: string; requests: Recorded[]; secrets: Secrets };

const MERCHANTS = ['m_test', 'm_other', 'm_unique', 'm_small'];
const SCOPES = 'audit:read ops:admin';

/** When it was read, or how long that took. */
const READING = /"(timestamp|exportedAt|nextAttemptAt)":( ?)"[^"]*"|"(seconds)":( ?)[0-9.]+/g;
const timeless = (text: string): string => text.replace(READING, '"$1$3":$2$4"…"');

/** An endpoint that has failed is tried once more, and three days after the folder was made disabled by that. */
const holdEndpoints = (folder: string): void => {
  const file = join(folder, 'webhook-deliveries.sqlite');
  if (!existsSync(file)) return;
  const deliveries = new DatabaseSync(file);
  deliveries.exec(`UPDATE delivery SET row = json_set(row, '$.probeAt', ${Number.MAX_SAFE_INTEGER})
    WHERE row ->> 'fails' > 0`);
  deliveries.close();
};

/** Opens a copy whose provider answers nothing, so that what is open stays open. */
const openQuietly = async (folder: string): Promise<InProcess> => {
  holdEndpoints(folder);
  const provider = (own: Provider): Provider => ({
    ...own,
    lookUp: async () => ({ outcome: 'UNKNOWN', reason: 'timeout' }),
    fence: async () => ({ outcome: 'UNKNOWN', reason: 'timeout' }),
    laterResults: async () => ({ outcome: 'UNKNOWN', reason: 'timeout' }),
  });
  const service = await openInProcess(SETTINGS, undefined, { folder, provider });
  await until('the read models have caught up', async () => {
    const { json } = await service.ask('GET', '/health/ready', undefined, { token: null });
    const { readModels } = json.engines as { readModels?: { caughtUp?: boolean } };
    return readModels?.caughtUp === true;
  });
  return service;
};

/** Asks as a merchant, or as an auditor and operator of all. */
const reader = async (service: InProcess, merchant = '*') => {
  const bearer =
    merchant === '*'
      ? await signToken({ merchant_id: '*', sub: 'auditor', scope: SCOPES })
      : await token(merchant);
  return async (path: string, headers: Record<string, string> = {}): Promise<string> => {
    const response = await service.ask('GET', path, undefined, { token: bearer, headers });
    const { status } = response;
    return `${status} ${JSON.stringify(keptHeaders(response.headers))}\n${timeless(response.text)}`;
  };
};

/** Every payment of a merchant, by its list, page after page. */
const idsOf = async (service: InProcess, merchant: string): Promise<string[]> => {
  const ids: string[] = [];
  const asking = { token: await token(merchant) };
  for (let cursor = ''; ; ) {
    const path = `/api/v1/payments?limit=100${cursor}`;
    const { json } = await service.ask('GET', path, undefined, asking);
    ids.push(...(json.payments as { paymentId: string }[]).map(({ paymentId }) => paymentId));
    if (json.next === undefined || json.next === null) return ids;
    cursor = `&cursor=${encodeURIComponent(String(json.next))}`;
  }
};

/** GET of each payment and lists with their filters, of each merchant. */
const merchantReads = async (folder: string): Promise<Captured> => {
  await using service = await openQuietly(folder);
  const found: Captured = new Map();
  for (const merchant of MERCHANTS) {
    const read = await reader(service, merchant);
    for (const id of await idsOf(service, merchant))
      found.set(`get/${merchant}/${id}`, await read(`/api/v1/payments/${id}`));
    for (const query of ['', '?limit=3', '?status=FAILED', '?status=AUTHORIZED&limit=2'])
      found.set(`list/${merchant}${query}`, await read(`/api/v1/payments${query}`));
    found.set(`endpoints/${merchant}`, await read('/api/v1/webhook-endpoints'));
    found.set(`foreign/${merchant}`, await read('/api/v1/payments/pay_unknown'));
  }
  return found;
};

const COMMANDS = ['capture', 'void', 'refund'];

/** Timelines, the state at each revision, what a command would lead to, of each payment. */
const auditReads = async (folder: string): Promise<Captured> => {
  await using service = await openQuietly(folder);
  const read = await reader(service);
  const found: Captured = new Map();
  found.set('audit/log', await read('/audit/v1/events?limit=100'));
  for (const merchant of MERCHANTS) {
    for (const id of await idsOf(service, merchant)) {
      const path = `/audit/v1/payments/${id}`;
      const events = await read(`${path}/events`);
      found.set(`audit/${id}/events`, events);
      const revisions = events.match(/"revision":\d+/g) ?? [];
      for (const revision of revisions.keys())
        found.set(`audit/${id}/state/${revision}`, await read(`${path}/state?at=${revision}`));
      for (const command of COMMANDS)
        found.set(
          `audit/${id}/explain/${command}`,
          await read(`${path}/explain?command=${command}`),
        );
      found.set(`audit/${id}/verify`, await read(`${path}/verify`));
    }
  }
  for (const query of ['q=order-1', 'status=CAPTURED&limit=5', 'q=4242&limit=5'])
    found.set(`audit/search/${query}`, await read(`/audit/v1/payments?${query}`));
  for (const path of ['/ops/v1/unresolved', '/ops/v1/parked', '/ops/v1/topics/parked'])
    found.set(`ops${path.replaceAll('/', '-')}`, await read(path));
  return found;
};

/** Every request that had a definite outcome under its key, sent again. */
const repeats = async (folder: string, requests: readonly Recorded[]): Promise<Captured> => {
  await using service = await openQuietly(folder);
  const found: Captured = new Map();
  for (const [at, { merchant, path, key, body, status }] of requests.entries()) {
    if (key === undefined || key === LOST || ![200, 402, 422].includes(status)) continue;
    const asking = { token: await token(merchant), key };
    const {
      status: again,
      headers,
      text,
    } = await service.ask('POST', `/api/v1/payments${path}`, body, asking);
    const isReplay = headers['idempotent-replayed'] === 'true';
    const name = `repeat/${at}-${merchant}-${key}`;
    found.set(name, `${again} ${isReplay}\n${isReplay ? text : timeless(text)}`);
  }
  return found;
};

const TOPICS = ['events', 'state', 'seals'];

/** Every message of every topic, with its partition and key. */
const topics = async (folder: string): Promise<Captured> => {
  await using service = await openQuietly(folder);
  const read = await reader(service);
  const found: Captured = new Map();
  for (const topic of TOPICS)
    found.set(
      `topic/${topic}`,
      await read(`/ops/v1/topics/${topic}/messages?limit=1000&keys=true`),
    );
  return found;
};

/** The chain, the export with its manifest, and what the command line prints for programs. */
const offline = async (folder: string): Promise<Captured> => {
  const found: Captured = new Map();
  const scratch = temporaryFolder();
  try {
    const file = join(scratch.path, 'log.jsonl');
    const run = async (name: string, ...args: string[]): Promise<void> => {
      const { code, stdout } = await runCli(args, SETTINGS);
      found.set(`cli/${name}`, `${code}\n${timeless(stdout)}`);
    };
    const data = ['--data', folder];
    await run('verify', 'verify', '--all', ...data, '--format', 'json');
    await run('reconcile', 'reconcile', ...data, '--format', 'json');
    await runCli(['export', '--out', file, ...data], SETTINGS);
    found.set('export.jsonl', readFileSync(file, 'utf8'));
    found.set('export.manifest.json', timeless(readFileSync(`${file}.manifest.json`, 'utf8')));
    await run('verify-file', 'verify', '--file', file, '--format', 'json');
  } finally {
    scratch.remove();
  }
  return found;
};

/** What the command line prints for programs of a running service, and a rebuild's checksum. */
const commandLine = async (folder: string): Promise<Captured> => {
  await using service = await openQuietly(folder);
  const found: Captured = new Map();
  const url = await service.listen();
  const env = { ...SETTINGS, PAYMENTS_URL: url, PAYMENTS_TOKEN: '' };
  const run = async (name: string, ...args: string[]): Promise<void> => {
    const { code, stdout } = await runCli(args, { ...env, PAYMENTS_TOKEN: undefined });
    found.set(`cli/${name}`, `${code}\n${timeless(stdout)}`);
  };
  await run('find', 'find', 'order-1', '--format', 'json');
  await run('unresolved', 'unresolved', '--format', 'json');
  await run('parked', 'parked', 'list', '--format', 'json');
  await run('rebuild', 'projections', 'rebuild', '--yes', '--format', 'json');
  // It parks anew what it cannot read.
  const rebuild = found.get('cli/rebuild') ?? '';
  found.set('cli/rebuild', rebuild.replace(/"since": "[^"]*"/g, '"since": "…"'));
  await run('read-models', 'verify', '--read-models', '--format', 'json');
  return found;
};

/** Every message of a merchant from the start on, as the stream gives it. */
const streamOf = async (url: string, bearer: string): Promise<string[]> => {
  const path = `/api/v1/webhook-events/stream?from=start&types=${EVERY_TYPE.join()}`;
  const ending = new AbortController();
  const response = await fetch(url + path, {
    headers: { authorization: `Bearer ${bearer}` },
    signal: ending.signal,
  });
  let text = '';
  for await (const part of response.body ?? []) {
    text += Buffer.from(part).toString();
    if (text.includes('event: caught-up')) break;
  }
  ending.abort();
  return text.split('\n\n').filter((one) => one.includes('event: payment.'));
};

/** The messages that wait for an endpoint, as they arrive: their bodies, each well signed. */
const deliveries = async (folder: string, secrets: Secrets): Promise<Captured> => {
  const received = new Map<string, string>();
  const good = Object.values(secrets).map((secret) => new Webhook(secret));
  const isSigned = (body: string, headers: Record<string, string>): boolean =>
    good.some((webhook) => {
      try {
        webhook.verify(body, headers);
        return true;
      } catch {
        return false;
      }
    });
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const headers = request.headers as Record<string, string>;
      received.set(String(headers['webhook-id']), `${isSigned(body, headers)}\n${body}`);
      response.writeHead(204).end();
    });
  });
  await until('no other run of the tests holds the address of the endpoint', () => {
    server.listen(RECEIVER.port, RECEIVER.host);
    return once(server, 'listening').then(
      () => true,
      () => false,
    );
  });
  try {
    await using service = await openQuietly(folder);
    const asking = { token: await token('m_test') };
    const waiting = async () => {
      const { json } = await service.ask('GET', '/api/v1/webhook-endpoints', undefined, asking);
      const endpoints = json.endpoints as { id: string; createdAt: string; description?: string }[];
      return endpoints.find(({ description }) => description === WAITS);
    };
    const streamed = await streamOf(await service.listen(), asking.token);
    const { id, createdAt } = (await waiting()) as { id: string; createdAt: string };
    const due = streamed.filter(
      (one) => (/"timestamp":"([^"]+)"/.exec(one)?.[1] ?? '') > createdAt,
    );
    const resumed = { status: 'ENABLED', resumeFrom: 'checkpoint' };
    await service.ask('PATCH', `/api/v1/webhook-endpoints/${id}`, resumed, asking);
    await until('every message has come', () => received.size >= due.length);
    const sorted = [...received].sort(([one], [other]) => (one < other ? -1 : 1));
    const delivered = sorted.map(([id, text]) => `${id} ${text}`).join('\n');
    return new Map([
      ['webhooks/stream', streamed.join('\n\n')],
      ['webhooks/delivered', delivered],
    ]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
};

/** Makes each capture over a copy of its own. */
const inCopies = async (
  archive: string,
  captures: readonly ((folder: string) => Promise<Captured>)[],
): Promise<Captured> => {
  const found: Captured = new Map();
  for (const capture of captures) {
    const copy = unpack(archive);
    try {
      for (const [name, text] of await capture(copy.path)) found.set(name, text);
    } finally {
      copy.remove();
    }
  }
  return found;
};

const DOCUMENTS = ['openapi.json', 'openapi-audit.json', 'asyncapi.yaml'];

/** The documents that other programs are generated from. */
const documents = async (): Promise<Captured> =>
  new Map(
    DOCUMENTS.map((name) => [
      `docs/${name}`,
      readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8'),
    ]),
  );

/** Everything that is compared, of a story. */
export const captureAll = ({ archive, requests, secrets }: Story): Promise<Captured> =>
  inCopies(archive, [
    documents,
    offline,
    merchantReads,
    auditReads,
    (folder) => repeats(folder, requests),
    topics,
    commandLine,
    (folder) => deliveries(folder, secrets),
  ]);

/** What is compared of a log of many payments: digests, for the texts are large. */
export const captureMany = async (folder: string): Promise<Captured> => {
  const found = new Map([...(await offline(folder)), ...(await commandLine(folder))]);
  await using service = await openQuietly(folder);
  for (const merchant of ['m_0', 'm_6']) {
    const read = await reader(service, merchant);
    const ids = await idsOf(service, merchant);
    found.set(`many/ids/${merchant}`, ids.join('\n'));
    for (const id of [ids[0], ids.at(-1)])
      found.set(`many/${merchant}/${id}`, await read(`/api/v1/payments/${id}`));
  }
  // The id of the log is another one each time that it is made.
  const digest = (text: string): string => hash('sha256', text.replace(/"log": "[^"]*"/, ''));
  return new Map([...found].map(([name, text]) => [name, digest(withoutAdditions(name, text))]));
};

/** What is compared of a folder in which a payment cannot be read. */
export const captureParked = async (archive: string): Promise<Captured> => {
  const found = await inCopies(archive, [offline, merchantReads, topics, commandLine]);
  return new Map([...found].map(([name, text]) => [`parked/${name}`, text]));
};
