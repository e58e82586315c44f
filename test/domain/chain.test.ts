/**
 * The two hash chains, on events made up in memory: what fits is passed, and each kind of damage is
 * told with its reason and its place. test/audit/tampering.test.ts does the same to a real log.
 */
import { describe, expect, test } from '@jest/globals';
import {
  describeBreak,
  GENESIS_HASH,
  hashOf,
  type Link,
  LOG_START,
  linkLog,
  logCheck,
  storedCheck,
  verifyLog,
  verifyStream,
} from '../../shared/event-store/chain.ts';
import type { StoredForm } from '../../shared/event-store/port.ts';

type Row = Required<Omit<Link<number>, 'logHashBefore'>>;

const idAt = (position: number): string => `id-${position}`;

/** A log of events, one for each stream name, every one of them in its place. */
const logOf = (...streams: string[]): Row[] => {
  const log: Row[] = [];
  for (const stream of streams) {
    const own = log.filter((row) => row.stream === stream);
    const hashBefore = own.at(-1)?.hash ?? null;
    const position = log.length + 1;
    const place = { id: idAt(position), stream, revision: own.length };
    const text = JSON.stringify({ ...place, previousHash: hashBefore ?? GENESIS_HASH });
    const hash = hashOf(text);
    const logHash = linkLog(log.at(-1)?.logHash ?? GENESIS_HASH, hash);
    log.push({ ...place, position, hash, logHash, text, hashBefore });
  }
  return log;
};

const LOG = logOf('a', 'b', 'a', 'a', 'b');
const formOf = (row: Row): StoredForm => ({ ...row, position: String(row.position) });
/** The form as a store hands it out that keeps no log hash, and the id in the text alone. */
const bareFormOf = ({ position, stream, revision, hash, text }: Row): StoredForm => ({
  position: String(position),
  stream,
  revision,
  hash,
  text,
});
const rowAt = (index: number): Row => {
  const row = LOG[index];
  if (row === undefined) throw new Error(`the log has no row ${index}`);
  return row;
};
/** The log with one of its rows changed; a changed text gets its hash, unless one is given. */
const changedAt = (index: number, change: Partial<Row>): Row[] => {
  const hash = change.text === undefined ? {} : { hash: hashOf(change.text) };
  return LOG.with(index, { ...rowAt(index), ...hash, ...change });
};
const textWith = (index: number, change: object): string =>
  JSON.stringify({ ...JSON.parse(rowAt(index).text), ...change });

test('the hashes are SHA-256 in hex, and a log hash covers the one before it and the event', () => {
  const ofAbc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  expect(hashOf('abc')).toBe(ofAbc);
  expect(linkLog('ab', 'c')).toBe(ofAbc);
  expect(GENESIS_HASH).toBe('0'.repeat(64));
  expect(LOG_START).toStrictEqual({ position: 0, logHash: GENESIS_HASH });
});

type Damage = [what: string, change: Partial<Row>, reason: string];

/** What may be wrong with the third row, `a` at revision 1. */
const IN_STREAM: Damage[] = [
  ['another text', { text: '{}', hash: rowAt(2).hash }, 'its text does not have its hash'],
  ['another hash', { hash: rowAt(0).hash }, 'its text does not have its hash'],
  ['no JSON', { text: '{' }, 'its text belongs to another place'],
  ['JSON that is no object', { text: 'null' }, 'its text belongs to another place'],
  ['another stream', { text: textWith(2, { stream: 'b' }) }, 'its text belongs to another place'],
  ['another revision', { text: textWith(2, { revision: 2 }) }, 'its text belongs to another place'],
];

const IN_LOG: Damage[] = [
  ...IN_STREAM,
  ['another id', { id: idAt(9) }, 'its text belongs to another place'],
  ['a position left out', { position: 4 }, 'position 3 is missing'],
  ['no event before it', { hashBefore: null }, 'the event before it is missing'],
  [
    'another event before it',
    { text: textWith(2, { previousHash: rowAt(1).hash }) },
    'it does not follow the event before it',
  ],
  ['another log hash', { logHash: rowAt(1).logHash }, 'it does not follow in the log'],
];

describe('verifyLog', () => {
  test('passes a whole log, in one piece and in pages, and gives its end', () => {
    const end = { position: 5, logHash: rowAt(4).logHash };
    expect(verifyLog(LOG)).toStrictEqual({ end });
    const first = verifyLog(LOG.slice(0, 2));
    expect(first).toStrictEqual({ end: { position: 2, logHash: rowAt(1).logHash } });
    expect(verifyLog(LOG.slice(2), 'end' in first ? first.end : LOG_START)).toStrictEqual({ end });
    expect(verifyLog([])).toStrictEqual({ end: LOG_START });
  });

  test.each(IN_LOG)('stops at the first row with %s', (_what, change, reason) => {
    const log = changedAt(2, change);
    const position = change.position ?? 3;
    const broken = { position, stream: 'a', revision: 1, reason };
    expect(verifyLog(log)).toStrictEqual({ broken });
    expect(describeBreak(broken)).toBe(`position ${position} (stream a, revision 1): ${reason}`);
  });
});

/** What a check says of each row, one after the other. */
const said = async (
  check: (form: StoredForm) => string | undefined | Promise<string | undefined>,
  rows: StoredForm[],
): Promise<(string | undefined)[]> => {
  const reasons: (string | undefined)[] = [];
  for (const row of rows) reasons.push(await check(row));
  return reasons;
};
const NOTHING = LOG.map(() => undefined);

describe('logCheck', () => {
  test('passes a whole log, from its start and from a known end', async () => {
    expect(await said(logCheck().check, LOG.map(formOf))).toStrictEqual(NOTHING);
    const { position, logHash } = rowAt(1);
    const rest = LOG.slice(2).map(formOf);
    expect(await said(logCheck({ position, logHash }).check, rest)).toStrictEqual(NOTHING.slice(2));
    expect(logCheck().check(formOf(rowAt(2)))).toBe('position 1 is missing');
  });

  test('goes on after a link that does not fit, from what is stored of it', () => {
    const { check, end } = logCheck();
    check(formOf(rowAt(0)));
    const forged = { ...rowAt(1), text: textWith(1, { type: 'Forged' }) };
    expect(check(formOf(forged))).toBe('its text does not have its hash');
    expect(end()).toStrictEqual({ position: 2, logHash: rowAt(1).logHash });
    expect(check(formOf(rowAt(2)))).toBeUndefined();
  });

  test('takes an id from the text where the store keeps none beside it', async () => {
    const { id: _, ...form } = formOf(rowAt(0));
    expect(logCheck().check(form)).toBeUndefined();
    const noJson = { ...form, text: '{', hash: hashOf('{') };
    expect(logCheck().check(noJson)).toBe('its text belongs to another place');
  });

  test('does not pass a form without its log hash, or without the hash before it', async () => {
    expect(logCheck().check(bareFormOf(rowAt(0)))).toBe('it does not follow in the log');
    const { hashBefore: _, ...link } = rowAt(2);
    const after = { position: 2, logHash: rowAt(1).logHash };
    expect(logCheck(after).check(link)).toBe('the event before it is missing');
  });

  test.each(IN_LOG)('tells %s', async (_what, change, reason) => {
    const reasons = await said(logCheck().check, changedAt(2, change).map(formOf));
    expect(reasons.slice(0, 3)).toStrictEqual([undefined, undefined, reason]);
  });
});

const unread = (): Promise<StoredForm[]> => Promise.reject(new Error('read again'));

describe('storedCheck of the log', () => {
  test('passes a whole log without reading a stream, and tells an event that was changed', async () => {
    const check = storedCheck({ readStream: unread }, 'log');
    expect(await said(check, LOG.map(formOf))).toStrictEqual(NOTHING);
    const rows = changedAt(2, { logHash: rowAt(1).logHash }).map(formOf);
    const reasons = await said(storedCheck({ readStream: unread }, 'log'), rows);
    expect(reasons[2]).toBe('it does not follow in the log');
  });
});

describe('storedCheck of the log, where the store leaves out the hash before an event', () => {
  const leanFormOf = ({ hashBefore: _, ...row }: Row): StoredForm => formOf(row as Row);
  /** The third event with another text, whose hash and place in the log are right. */
  const linked = (change: object): Row => {
    const text = textWith(2, change);
    const hash = hashOf(text);
    return { ...rowAt(2), text, hash, logHash: linkLog(rowAt(1).logHash, hash) };
  };
  const third = async (row: Row, stream: Row[] = []): Promise<string | undefined> => {
    const readStream = async () => stream.map(leanFormOf);
    const rows = [rowAt(0), rowAt(1), row].map(leanFormOf);
    return (await said(storedCheck({ readStream }, 'log'), rows))[2];
  };

  test('passes a whole log without reading a stream', async () => {
    const check = storedCheck({ readStream: unread }, 'log');
    expect(await said(check, LOG.map(leanFormOf))).toStrictEqual(NOTHING);
  });

  test('tells an event that does not follow the one before it in its stream, as it was verified', async () => {
    const reason = 'it does not follow the event before it';
    expect(await third(linked({ previousHash: rowAt(1).hash }))).toBe(reason);
    expect(await third(linked({ previousHash: GENESIS_HASH }))).toBe(reason);
  });

  test('reads the stream for an event that comes after one it has not seen', async () => {
    const skipping = { ...linked({ revision: 2 }), revision: 2 };
    expect(await third(skipping)).toBe('the event before it is missing');
    const before = { ...rowAt(0), revision: 1 };
    expect(await third(skipping, [rowAt(0), before])).toBeUndefined();
    expect(await third(skipping, [{ ...before, hash: rowAt(1).hash }])).toBe(
      'it does not follow the event before it',
    );
  });
});

describe('storedCheck of each stream', () => {
  const readStream = async (stream: string): Promise<StoredForm[]> =>
    LOG.filter((row) => row.stream === stream).map(bareFormOf);

  test('passes streams in turns, and reads none again that it has seen from its start', async () => {
    expect(
      await said(storedCheck({ readStream: unread }, 'stream'), LOG.map(bareFormOf)),
    ).toStrictEqual(NOTHING);
  });

  test('reads the stream of an event that it meets in the middle', async () => {
    for (const start of [2, 3]) {
      const rest = LOG.slice(start).map(bareFormOf);
      const reasons = await said(storedCheck({ readStream }, 'stream'), rest);
      expect(reasons).toStrictEqual(NOTHING.slice(start));
    }
  });

  test('tells an event that is missing', async () => {
    const rows = [rowAt(0), rowAt(3)].map(bareFormOf);
    expect(await said(storedCheck({ readStream: unread }, 'stream'), rows)).toStrictEqual([
      undefined,
      'revision 1 is missing',
    ]);
    const nowhere = storedCheck({ readStream: async () => [] }, 'stream');
    expect(await nowhere(bareFormOf(rowAt(2)))).toBe('revision 0 is missing');
  });

  test('tells an event that does not follow the one before it', async () => {
    const text = textWith(2, { previousHash: rowAt(1).hash });
    const reasons = await said(
      storedCheck({ readStream: unread }, 'stream'),
      changedAt(2, { text }).map(bareFormOf),
    );
    expect(reasons[2]).toBe('it does not follow the event before it');
  });

  test.each(IN_STREAM)(
    'tells %s, goes on after it, and passes the other stream',
    async (_what, change, reason) => {
      const rows = changedAt(2, change).map(bareFormOf);
      const reasons = await said(storedCheck({ readStream: unread }, 'stream'), rows);
      expect(reasons).toStrictEqual([undefined, undefined, reason, undefined, undefined]);
    },
  );
});

describe('verifyStream', () => {
  test.each([
    ['does not follow the event before it in the log', rowAt(2).logHash, IN_LOG.at(-1)?.[2]],
    ['follows it', rowAt(1).logHash, undefined],
    ['has lost it, which is no fault of its own', null, undefined],
  ])('says of an event whether it %s', (_what, logHashBefore, reason) => {
    const rows = LOG.filter(({ stream }) => stream === 'a');
    const linked = rows.map((row, at) => (at === 1 ? { ...row, logHashBefore } : row));
    expect(verifyStream(linked)?.reason).toBe(reason);
  });

  const ownOf = (rows: Row[]): StoredForm[] =>
    rows.filter(({ stream }) => stream === 'a').map(bareFormOf);

  test('passes a whole stream, and one without events', () => {
    expect(verifyStream(ownOf(LOG))).toBeUndefined();
    expect(verifyStream([])).toBeUndefined();
  });

  test('names the event before which one is missing', () => {
    const own = ownOf(LOG);
    expect(verifyStream(own.slice(1))).toStrictEqual({
      position: '3',
      stream: 'a',
      revision: 1,
      reason: 'revision 0 is missing',
    });
    expect(verifyStream(own.toSpliced(1, 1))).toMatchObject({
      revision: 2,
      reason: 'revision 1 is missing',
    });
  });

  test.each(IN_STREAM)('tells %s', (_what, change, reason) => {
    expect(verifyStream(ownOf(changedAt(2, change)))).toStrictEqual({
      position: '3',
      stream: 'a',
      revision: 1,
      reason,
    });
  });
});
