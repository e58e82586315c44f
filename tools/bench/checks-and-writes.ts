/**
 * The least that a durable create can cost: bare Fastify with the two checks of the peers (token, schema)
 * and the writes of the service's create. Intent and outcome are commits with an fsync for each group of
 * requests; the provider's ledger and the read model are rows of two more files; each request has a line
 * of the log.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import fastify from 'fastify';
import { approved, merchantOf, newPayment, PaymentRequest } from './peers/contract.ts';

/** A table in a file; the rows of one turn of the event loop are one transaction. */
const openTable = (name: string, synchronous: 'FULL' | 'NORMAL') => {
  const database = new DatabaseSync(`${process.env.DATA_DIR}/${name}.sqlite`);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
  database.exec('CREATE TABLE IF NOT EXISTS rows (id TEXT PRIMARY KEY, text)');
  const insert = database.prepare('INSERT INTO rows VALUES (?, ?)');
  let waiting: [id: string, text: string, resolve: () => void][] = [];
  const commit = (): void => {
    const rows = waiting;
    waiting = [];
    database.exec('BEGIN');
    for (const [id, text] of rows) insert.run(id, text);
    database.exec('COMMIT');
    for (const [, , resolve] of rows) resolve();
  };
  return (id: string, text: string): Promise<void> =>
    new Promise((resolve) => {
      if (waiting.push([id, text, resolve]) === 1) setImmediate(commit);
    });
};

const append = openTable('events', 'FULL');
const record = openTable('ledger', 'NORMAL');
const save = openTable('read-models', 'NORMAL');
const log = createWriteStream(`${process.env.DATA_DIR}/requests.log`);

/** Appends an event and resolves to its hash, which covers the hash before it. */
const appendEvent = async (event: object): Promise<string> => {
  const text = JSON.stringify({ ...event, time: new Date().toISOString() });
  const hash = createHash('sha256').update(text).digest('base64url');
  await append(hash, text);
  return hash;
};

const app = fastify();
app.get('/health/ready', () => 'ready');
app.post('/api/v1/payments', async ({ id: requestId, headers, body }, reply) => {
  const merchantId = await merchantOf(headers.authorization);
  if (merchantId === undefined) return reply.status(401).send();
  const { data, error } = PaymentRequest.safeParse(body);
  if (error) return reply.status(400).send(error.issues);
  const payment = newPayment(merchantId, data);
  const { paymentId } = payment;
  const operationId = randomUUID();
  const before = await appendEvent({ ...payment, operationId });
  await record(operationId, `${paymentId} APPROVED`);
  await appendEvent({ paymentId, operationId, before });
  const response = JSON.stringify(await approved(payment));
  await save(paymentId, response);
  log.write(`${JSON.stringify({ level: 'info', requestId, paymentId, status: 201 })}\n`);
  return reply.status(201).type('application/json; charset=utf-8').send(response);
});
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
