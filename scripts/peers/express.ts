/** Express 5 over SQLite: one row for each payment, committed before the provider and after it. */
import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import express, { type NextFunction, type Request, type Response } from 'express';
import {
  approved,
  callProvider,
  newPayment,
  type Payment,
  PaymentRequest,
  responseOf,
} from './contract.ts';
import { merchantOf } from './token.ts';

const db = new DatabaseSync(`${process.env.DATA_DIR}/payments.sqlite`);
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
db.exec(`CREATE TABLE IF NOT EXISTS payments (
  id TEXT PRIMARY KEY, merchant_id TEXT NOT NULL, status TEXT NOT NULL, amount INTEGER NOT NULL,
  currency TEXT NOT NULL, data TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
)`);
const insert = db.prepare('INSERT INTO payments VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
const update = db.prepare('UPDATE payments SET status = ?, data = ?, updated_at = ? WHERE id = ?');
const select = db.prepare('SELECT data FROM payments WHERE id = ? AND merchant_id = ?');

const insertPayment = (payment: Payment): void => {
  const { paymentId, merchantId, status, amount, currency, createdAt, updatedAt } = payment;
  const data = JSON.stringify(payment);
  insert.run(paymentId, merchantId, status, amount, currency, data, createdAt, updatedAt);
};

const updatePayment = (payment: Payment): void => {
  const { status, updatedAt, paymentId } = payment;
  update.run(status, JSON.stringify(payment), updatedAt, paymentId);
};

const authenticate = async (request: Request, response: Response, next: NextFunction) => {
  const merchantId = await merchantOf(request.headers.authorization);
  if (merchantId === undefined) return response.status(401).json({ error: 'UNAUTHORIZED' });
  response.locals.merchantId = merchantId;
  next();
};

const app = express();
app.disable('x-powered-by');
app.get('/ready', (_request, response) => response.json({ ok: true }));
app.use(express.json(), authenticate);

app.post('/api/v1/payments', async (request, response) => {
  const parsed = PaymentRequest.safeParse(request.body);
  if (!parsed.success) {
    return response.status(400).json({ error: 'VALIDATION_ERROR', details: parsed.error.issues });
  }
  const payment = newPayment(`pay_${randomUUID()}`, response.locals.merchantId, parsed.data);
  insertPayment(payment);
  await callProvider(payment.paymentId);
  const done = approved(payment);
  updatePayment(done);
  return response.status(201).json(responseOf(done));
});

app.get('/api/v1/payments/:id', (request, response) => {
  const row = select.get(request.params.id, response.locals.merchantId);
  if (row === undefined) return response.status(404).json({ error: 'PAYMENT_NOT_FOUND' });
  return response.json(responseOf(JSON.parse(String(row.data))));
});

app.listen(Number(process.env.PORT), '127.0.0.1');
