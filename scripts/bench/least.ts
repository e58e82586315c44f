/**
 * The least that a durable create can cost: bare Fastify that makes the writes of the service's create,
 * and nothing else. Intent and outcome are commits of their own, in a thread and with an fsync for each
 * group; the provider's ledger and the read model are rows of two more files; each request has a line of
 * the log. There are no checks, no idempotency, no recovery, no metrics and no reads.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import fastify from 'fastify';
import {
  newEventId,
  newOperationId,
  newPaymentId,
  newRequestId,
} from '../../shared/runtime/ids.ts';
import type { EventRow } from './least-log.ts';

type Waiting<Row> = { row: Row; resolve: () => void };

/** Collects what is to be written until `flush` takes it; `flush` is called once a turn. */
const collecting = <Row>(flush: () => void) => {
  let waiting: Waiting<Row>[] = [];
  return {
    add: (row: Row): Promise<void> =>
      new Promise((resolve) => {
        if (waiting.push({ row, resolve }) === 1) setImmediate(flush);
      }),
    take: (): Waiting<Row>[] => {
      const taken = waiting;
      waiting = [];
      return taken;
    },
  };
};

const openLog = (file: string): ((row: EventRow) => Promise<void>) => {
  const thread = new Worker(new URL('./least-log.ts', import.meta.url), { workerData: file });
  let inWork: Waiting<EventRow>[] = [];
  const send = (): void => {
    if (inWork.length > 0) return;
    inWork = waiting.take();
    if (inWork.length > 0) thread.postMessage(inWork.flatMap(({ row }) => row));
  };
  const waiting = collecting<EventRow>(send);
  thread.on('message', () => {
    const done = inWork;
    inWork = [];
    for (const { resolve } of done) resolve();
    send();
  });
  return waiting.add;
};

type Row = (string | number)[];

const openTable = (file: string, columns: string): ((row: Row) => Promise<void>) => {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  database.exec(`CREATE TABLE rows (${columns})`);
  const insert = database.prepare(`INSERT INTO rows VALUES (${columns.replaceAll(/[^,]+/g, '?')})`);
  const waiting = collecting<Row>(() => {
    const rows = waiting.take();
    database.exec('BEGIN');
    for (const { row } of rows) insert.run(...row);
    database.exec('COMMIT');
    for (const { resolve } of rows) resolve();
  });
  return waiting.add;
};

const folder = process.env.DATA_DIR ?? '';
const append = openLog(join(folder, 'least-events.sqlite'));
const record = openTable(
  join(folder, 'least-ledger.sqlite'),
  'operation_id TEXT PRIMARY KEY, payment_id, kind, amount, currency, outcome',
);
const write = openTable(
  join(folder, 'least-read-models.sqlite'),
  'payment_id TEXT PRIMARY KEY, merchant_id, status, revision, body',
);

const log = createWriteStream(join(folder, 'least.log'));
const LINES = 100;
let lines: string[] = [];
const note = (fields: object): void => {
  if (lines.push(JSON.stringify(fields)) < LINES) return;
  log.write(`${lines.join('\n')}\n`);
  lines = [];
};

/** The event's text and its hash, which covers the hash before it. */
const eventOf = (type: string, data: object, before = ''): [text: string, hash: string] => {
  const time = new Date().toISOString();
  const text = JSON.stringify({ id: newEventId(), time, actor: 'm_demo', type, data, before });
  return [text, createHash('sha256').update(text).digest('base64url')];
};

const app = fastify({ genReqId: newRequestId });
app.post('/', async ({ id: requestId, body }, reply) => {
  const startedAtMs = performance.now();
  const { paymentMethod, amount, currency, captureNow, ...details } = body as {
    paymentMethod: { card: Record<string, string> };
    amount: number;
    currency: string;
    captureNow: boolean;
  };
  const { number = '', cvv: _, ...shown } = paymentMethod.card;
  const card = { ...shown, bin: number.slice(0, 8), last4: number.slice(-4) };
  const paymentId = newPaymentId();
  const operationId = newOperationId();
  const money = { operationId, amount, currency };
  const created = { ...money, paymentId, captureNow, card, details };
  const [intent, intentHash] = eventOf('PaymentCreated', created);
  await append([paymentId, 0, intentHash, intent]);
  await record([operationId, paymentId, 'AUTHORIZE', amount, currency, 'APPROVED']);
  const [outcome, outcomeHash] = eventOf('PaymentAuthorized', money, intentHash);
  await append([paymentId, 1, outcomeHash, outcome]);
  const createdAt = new Date().toISOString();
  const attempt = { id: operationId, type: 'AUTH', amount, result: 'SUCCEEDED', createdAt };
  const response = JSON.stringify({
    ...{ paymentId, amount, currency, status: 'AUTHORIZED', captureNow, ...details },
    paymentMethod: { type: 'CARD', card, encryptedCard: card },
    ...{ createdAt, updatedAt: createdAt, transactions: [attempt] },
  });
  await write([paymentId, 'm_demo', 'AUTHORIZED', 1, response]);
  const durationMs = performance.now() - startedAtMs;
  note({ level: 'info', time: createdAt, requestId, paymentId, status: 200, durationMs });
  return reply.type('application/json; charset=utf-8').send(response);
});
app.get('/', () => 'ready');
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
