/**
 * Changes by a writer of a data folder's files, in one table: the log, the read
 * models, the provider's ledger. The writer knows the code and has no key.
 */
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeSeal, type SealedHead } from '../../audit/seals/seals.ts';
import { hashOf } from '../../shared/event-store/chain.ts';
import { chainedAnew, openRows, type Row } from './tampering.ts';

/** The sealing key, on a volume of its own beside the data folder; its head lies beside it. */
export const KEY_FILE = '../keys/sealing-key.pem';

/**
 * The payment that is tampered with: a sale in the middle of the log, before the kept head, or one
 * near its end, after it.
 */
export type Target = { paymentId: string; lateId: string };

/** A tampering: `changes` says what of the payment it makes untrue. */
export type Tampering = {
  name: string;
  /** `with the key`: money, by a thief of the sealing key, which nothing can show. */
  changes: 'money' | 'merchant' | 'nothing' | 'with the key';
  where: 'log' | 'elsewhere';
  apply(folder: string, target: Target): void;
};

const isOf = ({ paymentId }: Target, { text }: Row): boolean =>
  text.includes(`"paymentId":"${paymentId}"`) || text.includes(`"payment-${paymentId}"`);

const SUM = 95_00;
/** Every sum of the event, so that no sum of the payment contradicts another. */
const dearer = (text: string): string => text.replace(/"amount":\d+/g, `"amount":${SUM}`);
const stolen = (text: string): string =>
  text.replace(/"merchantId":"[^"]*"/, '"merchantId":"m_evil"');

type Names = ReadonlyMap<number, string>;
/** `names` are those of the streams, by their number. */
type RowsChange = (rows: Row[], target: Target, names: Names) => Row[];

const inLog = (change: RowsChange) => (folder: string, target: Target) => {
  const log = openRows(join(folder, 'events.sqlite'));
  const names = new Map(log.streams.map(({ id, name }) => [id, name]));
  log.write(change(log.rows, target, names));
  log.close();
};

const ofTarget =
  (change: (row: Row) => Row): RowsChange =>
  (rows, target) =>
    rows.map((row) => (isOf(target, row) ? change(row) : row));

const withText = (edit: (text: string) => string) => (row: Row) => ({
  ...row,
  text: edit(row.text),
});
const withOwnHash = (edit: (text: string) => string) => (row: Row) => {
  const text = edit(row.text);
  return { ...row, text, hash: hashOf(text) };
};

const allHashes =
  (change: RowsChange): RowsChange =>
  (rows, target, names) =>
    chainedAnew(change(rows, target, names));

/** Each seal made anew with a key, for the log as it is now; `sealed` gets the last head. */
const sealedAnew =
  (change: RowsChange, key: KeyObject, sealed: (head: SealedHead) => void): RowsChange =>
  (rows, target, names) =>
    chainedAnew(change(rows, target, names), (row, logHashes) => {
      if (names.get(row.stream_id) !== 'log-seals') return row.text;
      const stored = JSON.parse(row.text);
      const logHash = logHashes[Number(stored.data.position) - 1] ?? '';
      const head = { log: stored.data.log, position: stored.data.position, logHash };
      sealed(head);
      return JSON.stringify({ ...stored, data: makeSeal(key, head) });
    });

const withOwnSeals =
  (change: RowsChange): Tampering['apply'] =>
  (folder, target) =>
    deleted(sealedAnew(change, generateKeyPairSync('ed25519').privateKey, () => undefined))(
      folder,
      target,
    );

const withKeyInHand =
  (change: RowsChange): Tampering['apply'] =>
  (folder, target) => {
    const file = join(folder, KEY_FILE);
    const keep = (head: SealedHead) => writeFileSync(`${file}.head`, JSON.stringify(head));
    deleted(sealedAnew(change, createPrivateKey(readFileSync(file, 'utf8')), keep))(folder, target);
  };

const swapped: RowsChange = (rows, target) => {
  const [first, second] = rows.filter((row) => isOf(target, row)).slice(1, 3) as [Row, Row];
  const swap = (row: Row, other: Row): Row => ({ ...row, text: other.text, hash: other.hash });
  return rows.map((row) => {
    if (row === first) return swap(row, second);
    return row === second ? swap(row, first) : row;
  });
};

/** The last event of the payment taken out of the middle of the log. */
const withoutLast: RowsChange = (rows, target) => {
  const last = rows.findLast((row) => isOf(target, row));
  return rows.filter((row) => row !== last);
};
const withoutPayment: RowsChange = (rows, target) => rows.filter((row) => !isOf(target, row));
/** Everything from the payment's last event on. */
const cut: RowsChange = (rows, target) =>
  rows.slice(
    0,
    rows.findLastIndex((row) => isOf(target, row)),
  );

/** The same of a payment that was made after the head that was kept elsewhere. */
const late =
  (change: RowsChange): RowsChange =>
  (rows, { lateId }, names) =>
    change(rows, { paymentId: lateId, lateId }, names);
/** The seals are events of the log: a writer without the key can only leave them out. */
const withoutSeals =
  (change: RowsChange): RowsChange =>
  (rows, target, names) =>
    change(rows, target, names).filter(({ stream_id }) => names.get(stream_id) !== 'log-seals');

const withoutReadModels =
  (apply: Tampering['apply']): Tampering['apply'] =>
  (folder, target) => {
    apply(folder, target);
    for (const suffix of ['', '-wal', '-shm'])
      rmSync(join(folder, `read-models.sqlite${suffix}`), { force: true });
  };

/** The read models are kept, and their checkpoint, which carries no check, is made to fit the log. */
const withCheckpoint =
  (change: RowsChange): Tampering['apply'] =>
  (folder, target) => {
    inLog(change)(folder, target);
    const log = openRows(join(folder, 'events.sqlite'));
    const { position, log_hash } = log.rows.at(-1) as Row;
    log.close();
    const db = new DatabaseSync(join(folder, 'read-models.sqlite'));
    const padded = db.prepare('SELECT position FROM checkpoint').get()?.position as string;
    const at = String(position).padStart(padded.length, '0');
    db.prepare('UPDATE checkpoint SET position = ?, hash = ?').run(at, log_hash);
    db.close();
  };

const sql =
  (file: string, statement: (target: Target) => string): Tampering['apply'] =>
  (folder, target) => {
    const db = new DatabaseSync(join(folder, file));
    for (const change of ['update', 'delete']) db.exec(`DROP TRIGGER IF EXISTS meta_no_${change}`);
    db.exec(statement(target));
    db.close();
  };

const ofRow =
  (set: string) =>
  ({ paymentId }: Target) =>
    `UPDATE payment SET ${set} WHERE payment_id = '${paymentId}'`;
const DEARER_BODY = `body = replace(body, '"capturedAmount":', '"capturedAmount":9')`;
/** As long and of the same letters as the right one, under a key of the forger's own. */
const OWN_CHECK = createHmac('sha256', 'a key of the forger').update('row').digest('base64url');
const inLedger =
  (change: string) =>
  ({ paymentId }: Target) =>
    `${change} WHERE payment_id = '${paymentId}'`;

const money = (name: string, apply: Tampering['apply']): Tampering => ({
  ...{ name, changes: 'money', where: 'log', apply },
});
const elsewhere = (tampering: Tampering): Tampering => ({ ...tampering, where: 'elsewhere' });
const merchant = (name: string, apply: Tampering['apply']): Tampering => ({
  ...{ name, changes: 'merchant', where: 'log', apply },
});
const kept = (change: RowsChange) => inLog(change);
const deleted = (change: RowsChange) => withoutReadModels(inLog(change));

const EVERY_SUM = ofTarget(withText(dearer));
const MERCHANT = ofTarget(withText(stolen));

/** Every tampering, in the order of the page. */
export const TAMPERINGS: readonly Tampering[] = [
  money('an amount in a text', kept(EVERY_SUM)),
  money('every sum, rehashed, no read models', deleted(allHashes(EVERY_SUM))),
  elsewhere(money("a read model's body", sql('read-models.sqlite', ofRow(DEARER_BODY)))),
  money('an amount, with the hash of its event', kept(ofTarget(withOwnHash(dearer)))),
  money('every sum, rehashed', kept(allHashes(EVERY_SUM))),
  money(
    "every sum, rehashed, the read models' checkpoint made to fit",
    withCheckpoint(allHashes(EVERY_SUM)),
  ),
  money(
    'every sum, rehashed, no seals and read models',
    deleted(allHashes(withoutSeals(EVERY_SUM))),
  ),
  money('every sum, rehashed, sealed with another key, no read models', withOwnSeals(EVERY_SUM)),
  {
    name: 'every sum, rehashed, sealed with the key, no read models',
    changes: 'with the key',
    where: 'log',
    apply: withKeyInHand(EVERY_SUM),
  },
  money(
    'every sum after the kept head, rehashed, no read models',
    deleted(allHashes(late(EVERY_SUM))),
  ),
  money(
    'every sum after the kept head, rehashed, no seals and read models',
    deleted(allHashes(late(withoutSeals(EVERY_SUM)))),
  ),
  money('two events swapped', kept(swapped)),
  money('an event deleted in the middle', kept(withoutLast)),
  money('an event deleted in the middle, rehashed', kept(allHashes(withoutLast))),
  money(
    'an event deleted in the middle, rehashed, no read models',
    deleted(allHashes(withoutLast)),
  ),
  money('a payment deleted, rehashed', kept(allHashes(withoutPayment))),
  money('a payment deleted, rehashed, no read models', deleted(allHashes(withoutPayment))),
  money('the tail cut off', kept(cut)),
  money("the tail cut off, the read models' checkpoint made to fit", withCheckpoint(cut)),
  money('the tail cut off, no read models', deleted(cut)),
  money('the tail cut off after the kept head, no read models', deleted(late(cut))),
  merchant('the merchant in a text', kept(MERCHANT)),
  merchant('the merchant, with the hash of its event', kept(ofTarget(withOwnHash(stolen)))),
  merchant('the merchant, rehashed', kept(allHashes(MERCHANT))),
  merchant('the merchant, rehashed, no read models', deleted(allHashes(MERCHANT))),
  elsewhere(money("a read model's status", sql('read-models.sqlite', ofRow("status = 'VOIDED'")))),
  elsewhere(
    merchant("a read model's merchant", sql('read-models.sqlite', ofRow("merchant_id = 'm_evil'"))),
  ),
  elsewhere(
    money(
      "a read model's body, with a check under another key",
      sql('read-models.sqlite', ofRow(`${DEARER_BODY}, row_check = '${OWN_CHECK}'`)),
    ),
  ),
  elsewhere(
    money(
      "a read model's row deleted",
      sql(
        'read-models.sqlite',
        ({ paymentId }) => `DELETE FROM payment WHERE payment_id = '${paymentId}'`,
      ),
    ),
  ),
  elsewhere(
    money(
      "an amount in the provider's ledger",
      sql('provider-ledger.sqlite', inLedger(`UPDATE operations SET amount = ${SUM}`)),
    ),
  ),
  elsewhere(
    money(
      "a row of the provider's ledger deleted",
      sql('provider-ledger.sqlite', inLedger('DELETE FROM operations')),
    ),
  ),
  {
    name: "the check value of the secret, in the log's file",
    changes: 'nothing',
    where: 'log',
    apply: sql(
      'events.sqlite',
      () => "UPDATE meta SET value = 'another' WHERE key = 'idempotency-check'",
    ),
  },
];
