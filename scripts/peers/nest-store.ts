/** Events and read models of the NestJS peer: in SQLite, each append committed, or in memory. */
import { DatabaseSync } from 'node:sqlite';
import { Injectable } from '@nestjs/common';
import type { Payment } from './contract.ts';

export class PaymentCreated {
  readonly type = 'PaymentCreated';
  constructor(readonly payment: Payment) {}
}
export class PaymentSucceeded {
  readonly type = 'PaymentSucceeded';
  constructor(readonly payment: Payment) {}
}

const openTables = (file: string) => {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  db.exec(`CREATE TABLE IF NOT EXISTS events (position INTEGER PRIMARY KEY, stream TEXT NOT NULL,
    revision INTEGER NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL, UNIQUE (stream, revision))`);
  db.exec('CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, data TEXT NOT NULL)');
  return {
    append: db.prepare('INSERT INTO events (stream, revision, type, data) VALUES (?, ?, ?, ?)'),
    save: db.prepare('INSERT OR REPLACE INTO payments VALUES (?, ?)'),
    find: db.prepare('SELECT data FROM payments WHERE id = ?'),
  };
};

/** In memory where MEMORY is set. */
@Injectable()
export class PaymentStore {
  private readonly tables = process.env.MEMORY
    ? undefined
    : openTables(`${process.env.DATA_DIR}/payments.sqlite`);
  private readonly streams = new Map<string, object[]>();
  private readonly payments = new Map<string, Payment>();

  append(stream: string, revision: number, event: PaymentCreated | PaymentSucceeded): void {
    const { type, payment } = event;
    if (this.tables !== undefined) {
      this.tables.append.run(stream, revision, type, JSON.stringify(payment));
      return;
    }
    const events = this.streams.get(stream) ?? [];
    if (events.length !== revision) throw new Error(`${stream} does not end at ${revision}`);
    events.push(event);
    this.streams.set(stream, events);
  }

  save(payment: Payment): void {
    if (this.tables === undefined) this.payments.set(payment.paymentId, payment);
    else this.tables.save.run(payment.paymentId, JSON.stringify(payment));
  }

  find(paymentId: string): Payment | undefined {
    if (this.tables === undefined) return this.payments.get(paymentId);
    const row = this.tables.find.get(paymentId);
    return row && JSON.parse(String(row.data));
  }
}
