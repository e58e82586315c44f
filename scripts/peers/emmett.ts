/** emmett with its SQLite store behind Express: events, a decision for each command, GET by the fold. */
import { randomUUID } from 'node:crypto';
import { CommandHandler, type Event } from '@event-driven-io/emmett';
import { getSQLiteEventStore } from '@event-driven-io/emmett-sqlite';
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

type PaymentCreated = Event<'PaymentCreated', Payment>;
type PaymentApproved = Event<'PaymentApproved', { paymentId: string; status: Payment['status'] }>;
type PaymentEvent = PaymentCreated | PaymentApproved;

const initialState = (): Payment | undefined => undefined;
const evolve = (state: Payment | undefined, event: PaymentEvent): Payment | undefined => {
  if (event.type === 'PaymentCreated') return event.data;
  return state && { ...state, status: event.data.status };
};

const store = getSQLiteEventStore({ fileName: `${process.env.DATA_DIR}/events.sqlite` });
const handle = CommandHandler<Payment | undefined, PaymentEvent>({ evolve, initialState });

const ATTEMPTS_MAX = 5;

/** Now and then the store commits while a statement of its own still runs: then it is tried again. */
const again = async <T>(call: () => Promise<T>, attempt = 1): Promise<T> => {
  try {
    return await call();
  } catch (error) {
    if (Object(error).code !== 'SQLITE_BUSY' || attempt === ATTEMPTS_MAX) throw error;
    return again(call, attempt + 1);
  }
};

// The store opens and closes one shared connection for each call: calls at once end each other.
let last: Promise<unknown> = Promise.resolve();
const oneByOne = <T>(call: () => Promise<T>): Promise<T> => {
  const result = last.then(() => again(call));
  last = result.catch(() => undefined);
  return result;
};

const create = (payment: Payment) =>
  oneByOne(() =>
    handle(store, payment.paymentId, (state): PaymentEvent[] => {
      if (state !== undefined) throw new Error(`payment ${payment.paymentId} exists`);
      return [{ type: 'PaymentCreated', data: payment }];
    }),
  );

const approve = (paymentId: string) =>
  oneByOne(() =>
    handle(store, paymentId, (state): PaymentEvent[] => {
      if (state === undefined) throw new Error(`payment ${paymentId} does not exist`);
      return [{ type: 'PaymentApproved', data: { paymentId, status: approved(state).status } }];
    }),
  );

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
  await create(payment);
  await callProvider(payment.paymentId);
  const { newState } = await approve(payment.paymentId);
  return response.status(201).json(responseOf(newState as Payment));
});

app.get('/api/v1/payments/:id', async (request, response) => {
  const { id } = request.params;
  const { state } = await oneByOne(() =>
    store.aggregateStream<Payment | undefined, PaymentEvent>(id, { evolve, initialState }),
  );
  if (state?.merchantId !== response.locals.merchantId) {
    return response.status(404).json({ error: 'PAYMENT_NOT_FOUND' });
  }
  return response.json(responseOf(state as Payment));
});

app.listen(Number(process.env.PORT), '127.0.0.1');
