/**
 * The two hash chains, on events made up in memory: what fits is passed, and each kind of damage is
 * told with its reason and its place. test/audit/tampering.test.ts does the same to a real log.
 */
import { describe, expect, test } from '@jest/globals';
import {
  beforeIn,
  GENESIS_HASH,
  hashOf,
  LOG_START,
  linkLog,
  storedCheck,
  verifyStream,
} from '../../shared/event-store/chain.ts';
import type { StoredForm } from '../../shared/event-store/port.ts';

type Form = StoredForm & { id: string; logHash: string };

const idAt = (position: number): string => `id-${position}`;

/** A log of events, one for each stream name, every one of them in its place. */
const logOf = (...streams: string[]): Form[] => {
  const log: Form[] = [];
  for (const stream of streams) {
    const own = log.filter((form) => form.stream === stream);
    const place = { id: idAt(log.length + 1), stream, revision: own.length };
    const text = JSON.stringify({ ...place, previousHash: own.at(-1)?.hash ?? GENESIS_HASH });
    const hash = hashOf(text);
    const logHash = linkLog(log.at(-1)?.logHash ?? GENESIS_HASH, hash);
    log.push({ ...place, position: String(log.length + 1), hash, logHash, text });
  }
  return log;
};

const LOG = logOf('a', 'b', 'a', 'a', 'b');
/** The form as a store hands it out that keeps no log hash, and the id in the text alone. */
const bareFormOf = ({ position, stream, revision, hash, text }: Form): StoredForm => ({
  position,
  stream,
  revision,
  hash,
  text,
});
const formAt = (index: number): Form => {
  const form = LOG[index];
  if (form === undefined) throw new Error(`the log has no event ${index}`);
  return form;
};
/** The log with one of its events changed; a changed text gets its hash, unless one is given. */
const changedAt = (index: number, change: Partial<Form>): Form[] => {
  const hash = change.text === undefined ? {} : { hash: hashOf(change.text) };
  return LOG.with(index, { ...formAt(index), ...hash, ...change });
};
const textWith = (index: number, change: object): string =>
  JSON.stringify({ ...JSON.parse(formAt(index).text), ...change });

test('the hashes are SHA-256 in hex, and a log hash covers the one before it and the event', () => {
  const ofAbc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  expect(hashOf('abc')).toBe(ofAbc);
  expect(linkLog('ab', 'c')).toBe(ofAbc);
  expect(GENESIS_HASH).toBe('0'.repeat(64));
  expect(LOG_START).toStrictEqual({ position: 0, logHash: GENESIS_HASH });
});

type Damage = [what: string, change: Partial<Form>, reason: string];

/** What may be wrong with the third event, `a` at revision 1. */
const IN_STREAM: Damage[] = [
  ['another text', { text: '{}', hash: formAt(2).hash }, 'its text does not have its hash'],
  ['another hash', { hash: formAt(0).hash }, 'its text does not have its hash'],
  ['no JSON', { text: '{' }, 'its text belongs to another place'],
  ['JSON that is no object', { text: 'null' }, 'its text belongs to another place'],
  ['another stream', { text: textWith(2, { stream: 'b' }) }, 'its text belongs to another place'],
  ['another revision', { text: textWith(2, { revision: 2 }) }, 'its text belongs to another place'],
];

const NOT_AFTER = 'it does not follow the event before it';
const NOT_IN_LOG = 'it does not follow in the log';
const ofAnother = textWith(2, { previousHash: formAt(1).hash });

const IN_LOG: Damage[] = [
  ...IN_STREAM,
  ['another id', { id: idAt(9) }, 'its text belongs to another place'],
  ['a position left out', { position: '4' }, 'position 3 is missing'],
  ['another event before it', { text: ofAnother }, NOT_AFTER],
  ['another log hash', { logHash: formAt(1).logHash }, NOT_IN_LOG],
];

/** What a check says of each event, one after the other. */
const said = async (
  check: ReturnType<typeof storedCheck>,
  forms: StoredForm[],
): Promise<(string | undefined)[]> => {
  const reasons: (string | undefined)[] = [];
  for (const form of forms) reasons.push(await check(form));
  return reasons;
};
const NOTHING = LOG.map(() => undefined);
const unread = (): Promise<StoredForm[]> => Promise.reject(new Error('read again'));

describe('storedCheck of the log', () => {
  const inLog = (
    readStream: (stream: string) => Promise<StoredForm[]> = unread,
    from = LOG_START,
  ) => storedCheck(beforeIn({ readStream }), 'log', from);

  test('passes a whole log without reading a stream', async () => {
    expect(await said(inLog(), LOG)).toStrictEqual(NOTHING);
  });

  test('passes the rest of a log from a known end, whose streams it reads', async () => {
    const readStream = async (stream: string) => LOG.filter((form) => form.stream === stream);
    const { logHash } = formAt(1);
    const rest = inLog(readStream, { position: 2, logHash });
    expect(await said(rest, LOG.slice(2))).toStrictEqual(NOTHING.slice(2));
    expect(await inLog(readStream)(formAt(2))).toBe('position 1 is missing');
  });

  test.each(IN_LOG)('tells %s', async (_what, change, reason) => {
    const reasons = await said(inLog(), changedAt(2, change).slice(0, 3));
    expect(reasons).toStrictEqual([undefined, undefined, reason]);
  });

  test('goes on after an event that does not fit, from what is stored of it', async () => {
    const forged = LOG.with(1, { ...formAt(1), text: textWith(1, { type: 'Forged' }) });
    expect(await said(inLog(), forged)).toStrictEqual(
      NOTHING.with(1, 'its text does not have its hash' as never),
    );
  });

  test('takes an id from the text where the store keeps none beside it', async () => {
    const { id: _, ...form } = formAt(0);
    expect(await inLog()(form)).toBeUndefined();
    const noJson = { ...form, text: '{', hash: hashOf('{') };
    expect(await inLog()(noJson)).toBe('its text belongs to another place');
  });

  test('does not pass a form without its log hash', async () => {
    expect(await inLog()(bareFormOf(formAt(0)))).toBe(NOT_IN_LOG);
  });

  test('reads the stream for an event that comes after one it has not seen', async () => {
    const text = textWith(2, { revision: 2 });
    const hash = hashOf(text);
    const logHash = linkLog(formAt(1).logHash, hash);
    const skipping = { ...formAt(2), revision: 2, text, hash, logHash };
    const third = async (stream: StoredForm[]) =>
      (
        await said(
          inLog(async () => stream),
          [formAt(0), formAt(1), skipping],
        )
      )[2];
    expect(await third([])).toBe('the event before it is missing');
    const before = { ...formAt(0), revision: 1 };
    expect(await third([formAt(0), before])).toBeUndefined();
    expect(await third([formAt(0), { ...before, hash: formAt(1).hash }])).toBe(NOT_AFTER);
  });
});

describe('storedCheck of each stream', () => {
  const readStream = async (stream: string): Promise<StoredForm[]> =>
    LOG.filter((form) => form.stream === stream).map(bareFormOf);
  const inStreams = (read = unread as typeof readStream) =>
    storedCheck(beforeIn({ readStream: read }), 'stream');

  test('passes streams in turns, and reads none again that it has seen from its start', async () => {
    expect(await said(inStreams(), LOG.map(bareFormOf))).toStrictEqual(NOTHING);
  });

  test('reads the stream of an event that it meets in the middle', async () => {
    for (const start of [2, 3]) {
      const rest = LOG.slice(start).map(bareFormOf);
      expect(await said(inStreams(readStream), rest)).toStrictEqual(NOTHING.slice(start));
    }
    expect(await inStreams(async () => [])(bareFormOf(formAt(2)))).toBe('revision 0 is missing');
  });
});

describe('verifyStream', () => {
  const ownOf = (forms: Form[]): StoredForm[] =>
    forms.filter(({ stream }) => stream === 'a').map(bareFormOf);

  test.each([
    ['does not follow the event before it in the log', formAt(2).logHash, NOT_IN_LOG],
    ['follows it', formAt(1).logHash, undefined],
    ['has lost it, which is no fault of its own', null, undefined],
  ])('says of an event whether it %s', (_what, logHashBefore, reason) => {
    const forms = LOG.filter(({ stream }) => stream === 'a');
    const linked = forms.map((form, at) => (at === 1 ? { ...form, logHashBefore } : form));
    expect(verifyStream(linked)?.reason).toBe(reason);
  });

  test('passes a whole stream, and one without events', () => {
    expect(verifyStream(ownOf(LOG))).toBeUndefined();
    expect(verifyStream([])).toBeUndefined();
  });

  test('names the event before which one is missing, but for a part of a stream', () => {
    const own = ownOf(LOG);
    const broken = { position: '3', stream: 'a', revision: 1, reason: 'revision 0 is missing' };
    expect(verifyStream(own.slice(1))).toStrictEqual(broken);
    expect(verifyStream(own.slice(1), true)).toBeUndefined();
    const gap = { revision: 2, reason: 'revision 1 is missing' };
    expect(verifyStream(own.toSpliced(1, 1))).toMatchObject(gap);
    expect(verifyStream(own.toSpliced(1, 1), true)).toMatchObject(gap);
  });

  test.each([...IN_STREAM, ['another event before it', { text: ofAnother }, NOT_AFTER] as Damage])(
    'tells %s',
    (_what, change, reason) => {
      const broken = { position: '3', stream: 'a', revision: 1, reason };
      expect(verifyStream(ownOf(changedAt(2, change)))).toStrictEqual(broken);
    },
  );
});
