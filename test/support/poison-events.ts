/**
 * Kinds of poison: events as a bug, a newer version or a broken repair might have left them in the
 * log. Each has the hash of its own text, so that it is the reading that has to notice.
 */
import { hashOf } from '../../shared/event-store/chain.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { Random } from './random.ts';
import type { Rows } from './tampering.ts';

type Row = Rows['rows'][number];
type Stored = { revision: number; data: Record<string, unknown>; [field: string]: unknown };

type Poison = {
  name: string;
  /** The text in place of the stored one; undefined takes the row away. */
  text: (stored: Stored, life: Stored[]) => string | undefined;
  /** The revisions that it can stand at; any, unless it says so. */
  from?: number;
  to?: number;
  /** The hash stays that of the text before. */
  keepsHash?: true;
};

const LAST = 5;
const MEGABYTE = 1_000_000;

const changed =
  (change: (stored: Stored) => object): Poison['text'] =>
  (stored) =>
    JSON.stringify({ ...stored, ...change(stored) });
const without =
  (field: string): Poison['text'] =>
  ({ [field]: _, ...rest }) =>
    JSON.stringify(rest);
const dataWith = (fields: object) => changed(({ data }) => ({ data: { ...data, ...fields } }));

export const POISON_EVENTS: readonly Poison[] = [
  { name: 'an unknown type', text: changed(() => ({ type: 'PaymentTeleported' })) },
  { name: 'a type of odd characters', text: changed(() => ({ type: '\n<b>' })) },
  { name: 'a type that is a number', text: changed(() => ({ type: 7 })) },
  { name: 'a version of tomorrow', text: changed(() => ({ schemaVersion: 99 })) },
  { name: 'version 0', text: changed(() => ({ schemaVersion: 0 })) },
  { name: 'a version that is a text', text: changed(() => ({ schemaVersion: '1' })) },
  { name: 'no version', text: without('schemaVersion') },
  { name: 'no data', text: without('data') },
  { name: 'data that is null', text: changed(() => ({ data: null })) },
  { name: 'data that is a list', text: changed(() => ({ data: [] })) },
  { name: 'a missing field', text: dataWith({ operationId: undefined }) },
  { name: 'an amount that is a text', text: dataWith({ amount: '2500' }) },
  { name: 'an amount with a fraction', text: dataWith({ amount: 2500.5 }) },
  { name: 'a negative amount', text: dataWith({ amount: -2500 }) },
  { name: 'an amount beyond every integer', text: dataWith({ amount: 1e300 }) },
  { name: 'no id', text: without('id') },
  { name: 'no context', text: without('context') },
  { name: 'a time that is none', text: changed(() => ({ time: 'yesterday' })) },
  { name: 'another stream', text: changed(() => ({ stream: 'payment-other' })) },
  {
    name: 'the revision of another event',
    text: changed(({ revision }) => ({ revision: revision === 0 ? 1 : revision - 1 })),
  },
  { name: 'no JSON', text: () => 'nothing' },
  { name: 'nothing at all', text: () => '' },
  { name: 'JSON that breaks off', text: (stored) => JSON.stringify(stored).slice(0, -20) },
  { name: 'JSON that is no object', text: () => '[42]' },
  { name: '1 MB of brackets', text: () => '['.repeat(MEGABYTE) },
  {
    name: '1 MB of text where a number stands',
    text: dataWith({ amount: '9'.repeat(MEGABYTE) }),
  },
  { name: 'a row that is gone', text: () => undefined, to: LAST - 1 },
  {
    name: 'a second PaymentCreated',
    text: ({ revision, ...rest }, [first]) =>
      JSON.stringify({ ...rest, revision, type: first?.type, data: first?.data }),
    from: 1,
  },
  {
    name: 'a stream that does not begin with PaymentCreated',
    text: (stored, [, second]) =>
      JSON.stringify({ ...stored, type: second?.type, data: second?.data }),
    to: 0,
  },
  {
    name: 'a refund before the capture',
    text: (stored, life) =>
      JSON.stringify({ ...stored, type: life[LAST]?.type, data: life[LAST]?.data }),
    from: 1,
    to: 2,
  },
  {
    name: 'another amount under the old hash',
    text: dataWith({ amount: 2499 }),
    keepsHash: true,
  },
];

const poisonedRow = (row: Row, text: string, { keepsHash }: Poison): Row => ({
  ...row,
  text,
  ...(keepsHash ? {} : { hash: hashOf(text) }),
});

export type Parked = { paymentId: string; revision: number; name: string };

/** Gives each payment the poison of its place in the list; tells where each has to be parked. */
export const putPoisonEvents = (
  rows: Rows,
  paymentIds: readonly string[],
  random: Random,
): Parked[] => {
  let changedRows = rows.rows;
  const parked = paymentIds.map((paymentId, n): Parked => {
    const poison = POISON_EVENTS[n] as Poison;
    const stream = rows.streams.find(({ name }) => name === streamOf(paymentId));
    const own = rows.rows.filter(({ stream_id }) => stream_id === stream?.id);
    const life = own.map(({ text }) => JSON.parse(text) as Stored);
    const at = random.between(poison.from ?? 0, poison.to ?? LAST);
    const text = poison.text(life[at] as Stored, life);
    changedRows = changedRows.flatMap((row) => {
      if (row !== own[at]) return [row];
      return text === undefined ? [] : [poisonedRow(row, text, poison)];
    });
    return { paymentId, revision: text === undefined ? at + 1 : at, name: poison.name };
  });
  rows.write(changedRows);
  return parked;
};
