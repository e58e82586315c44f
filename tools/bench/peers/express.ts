/** Express 5 over SQLite: one row for each payment, committed before the provider and after it. */
import { DatabaseSync } from 'node:sqlite';
import express from 'express';
import { approved, merchantOf, newPayment, PaymentRequest } from './contract.ts';

const db = new DatabaseSync(`${process.env.DATA_DIR}/payments.sqlite`);
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
db.exec(`CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, merchant_id TEXT NOT NULL,
  status TEXT NOT NULL, data TEXT NOT NULL)`);
const insert = db.prepare('INSERT INTO payments VALUES (?, ?, ?, ?)');
const update = db.prepare('UPDATE payments SET status = ?, data = ? WHERE id = ?');
const select = db.prepare('SELECT data FROM payments WHERE id = ? AND merchant_id = ?');

const app = express();
app.disable('x-powered-by');
app.get('/health/ready', (_request, response) => response.json({ ok: true }));
app.use(express.json(), async (request, response, next) => {
  const merchantId = await merchantOf(request.headers.authorization);
  if (merchantId === undefined) return response.status(401).json({ error: 'UNAUTHORIZED' });
  response.locals.merchantId = merchantId;
  next();
});
app.post('/api/v1/payments', async (request, response) => {
  const { data, error } = PaymentRequest.safeParse(request.body);
  if (error) return response.status(400).json({ error: 'VALIDATION_ERROR', issues: error.issues });
  const payment = newPayment(response.locals.merchantId, data);
  const { paymentId, merchantId, status } = payment;
  insert.run(paymentId, merchantId, status, JSON.stringify(payment));
  const done = await approved(payment);
  update.run(done.status, JSON.stringify(done), paymentId);
  return response.status(201).json(done);
});
app.get('/api/v1/payments/:id', (request, response) => {
  const row = select.get(request.params.id, response.locals.merchantId);
  if (row === undefined) return response.status(404).json({ error: 'PAYMENT_NOT_FOUND' });
  return response.json(JSON.parse(String(row.data)));
});
app.listen(Number(process.env.PORT), '127.0.0.1');
