/** A seal is made by one key over one log, position and log hash, and fits nothing else. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { findingOf, judgeBreaks, sealBefore } from '../../audit/breaks.ts';
import {
  keyIdOf,
  makeRotation,
  makeSeal,
  publicKeyOf,
  SEAL_SLACK_EVENTS,
  sealEventReason,
  sealsCheck,
} from '../../audit/seals/seals.ts';
import { encode } from '../../shared/event-store/codec.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519').privateKey;
const head = { log: crypto.randomUUID(), position: '36', logHash: 'ab'.repeat(32) };
const publicKey = publicKeyOf(privateKey);
const seal = makeSeal(privateKey, { ...head, eventsMax: 100 });
const against = { log: head.log, publicKey, logHash: head.logHash };

type Against = Parameters<typeof sealEventReason>[1];
const sealReason = (data: typeof seal, facts: Against) =>
  sealEventReason({ type: 'LogSealed', data }, facts);

describe('a seal', () => {
  const MISFIT = 'its signature is not the one of its key';
  test('fits the log that it was made of', () => {
    expect(sealReason(seal, against)).toBeUndefined();
    expect(sealReason(seal, { logHash: head.logHash })).toBeUndefined();
    expect(seal.keyId).toBe(keyIdOf(publicKey));
  });

  test.each([
    ['another position', { position: '35' }, MISFIT],
    ['another log hash', { logHash: 'cd'.repeat(32) }, MISFIT],
    ['another log', { log: crypto.randomUUID() }, MISFIT],
    ['a signature of nothing', { signature: 'A'.repeat(86) }, MISFIT],
    ['another number of events to the next one', { eventsMax: 1_000_000 }, MISFIT],
    ['none at all', { eventsMax: undefined }, MISFIT],
    ['another key id', { keyId: '0'.repeat(16) }, 'its key is not the one that its id names'],
  ])('changed to %s does not fit', (_, change, reason) => {
    const changed = { ...seal, ...change };
    const { log, logHash } = changed;
    expect(sealReason(changed, { ...against, log, logHash })).toBe(reason);
  });

  test('of another key, of another log, or over another head is told apart', () => {
    expect(sealReason(makeSeal(other, head), against)).toMatch(/^it was sealed with another key/);
    const strange = makeSeal(privateKey, { ...head, log: crypto.randomUUID() });
    expect(sealReason(strange, against)).toBe('it is the seal of another log');
    const gone = { ...against, logHash: undefined };
    expect(sealReason(seal, gone)).toBe('the log is not the one that was sealed at position 36');
  });

  test('that was forged with a public key of no curve does not fit', () => {
    const forged = { ...seal, publicKey: 'A'.repeat(42), keyId: keyIdOf('A'.repeat(42)) };
    expect(sealReason(forged, { logHash: head.logHash })).toBe(
      'its signature is not the one of its key',
    );
  });
});

/** A form of a log, as far as the check of the seals reads it. */
const formAt = (position: number) => ({
  position: String(position),
  stream: 'payment-pay_1',
  revision: position,
  hash: '',
  logHash: String(position % 10).repeat(64),
  text: '',
});
const sealAt = (position: number, sealed: number, eventsMax: number | undefined) => {
  const { logHash } = formAt(sealed);
  const data = makeSeal(privateKey, { ...head, position: String(sealed), logHash, eventsMax });
  const [encoded] = encode(SEALS_STREAM, 'none', [
    {
      id: newEventId(),
      time: '2026-01-01T00:00:00.000Z',
      event: { type: 'LogSealed', data },
      context: { actor: 'sealer', requestId: 'r', correlationId: 'r', causationId: 'r' },
    },
  ]);
  return { ...formAt(position), stream: SEALS_STREAM, revision: 0, text: encoded?.text ?? '' };
};
/** Every reason in a log of so many events, of which these are seals. */
const reasonsOf = (events: number, seals: ReturnType<typeof sealAt>[]) => {
  const check = sealsCheck({ log: head.log, publicKey });
  const byPosition = new Map(seals.map((form) => [form.position, form]));
  const reasons: string[] = [];
  for (let position = 1; position <= events; position += 1) {
    const reason = check.reasonFor(byPosition.get(String(position)) ?? formAt(position));
    if (reason !== undefined) reasons.push(`#${position}: ${reason}`);
  }
  return { reasons, found: check.found() };
};
/** The first of them, else what the seals come to. */
const firstReason = (events: number, seals: ReturnType<typeof sealAt>[]) => {
  const { reasons, found } = reasonsOf(events, seals);
  return reasons[0] ?? found;
};

describe('the seals of a log', () => {
  const bound = 2 * 100 + SEAL_SLACK_EVENTS;

  test('may not be missing: so many events may follow one, and not one more', () => {
    const seals = [sealAt(11, 10, 100)];
    expect(firstReason(11 + bound, seals)).toMatchObject({ seals: 1, eventsAfter: bound });
    expect(firstReason(12 + bound, seals)).toMatch(
      new RegExp(`^#${12 + bound}: more than ${bound} events follow the seal of position 10`),
    );
    const next = sealAt(5_000, 4_999, 100);
    expect(firstReason(12 + bound, [...seals, next])).toMatchObject({ seals: 2 });
  });

  test('one that is missing leaves the log INCOMPLETE, beside a changed event BROKEN', () => {
    const { reasons } = reasonsOf(12 + bound, [sealAt(11, 10, 100)]);
    const missing = { position: '1', stream: 's', revision: 0, reason: reasons[0] ?? '' };
    const changed = { ...missing, reason: 'its text does not have its hash' };
    const judged = (...kept: (typeof missing)[]) =>
      judgeBreaks({ count: kept.length, kept, acknowledgements: [] });
    expect(judged(missing)).toMatchObject({ count: 1, unsealed: 1 });
    expect(findingOf(judged(missing))).toBe('INCOMPLETE');
    expect(sealBefore(missing)).toBe('10');
    expect(findingOf(judged(missing, changed))).toBe('BROKEN');
    expect(findingOf(judged())).toBe('INTACT');
  });

  test('may be missing before the first one, and after one of a version that did not say', () => {
    expect(firstReason(2 * bound, [])).toMatchObject({ seals: 0, eventsAfter: 2 * bound });
    expect(firstReason(2 * bound, [sealAt(11, 10, undefined)])).toMatchObject({ seals: 1 });
  });

  test('each seal a place before themselves and after the seal before them', () => {
    expect(firstReason(50, [sealAt(11, 10, 100), sealAt(40, 11, 100)])).toMatchObject({ seals: 2 });
    expect(firstReason(50, [sealAt(11, 10, 100), sealAt(40, 10, 100)])).toBe(
      '#40: it seals nothing after the seal before it',
    );
    const ahead = '#11: the log is not the one that was sealed at position';
    expect(firstReason(50, [sealAt(11, 11, 100)])).toBe(`${ahead} 11`);
    expect(firstReason(50, [sealAt(11, 30, 100)])).toBe(`${ahead} 30`);
  });
});

describe('after a break in the seals of a log', () => {
  const bound = 2 * 100 + SEAL_SLACK_EVENTS;

  test('each later seal is still checked, and one that does not fit is none that is missing', () => {
    const first = sealAt(11, 10, 100);
    const misfit = sealAt(5_000, 5_001, 100);
    const reason = '#5000: the log is not the one that was sealed at position 5001';
    const { reasons, found } = reasonsOf(12 + bound, [first, misfit, sealAt(6_000, 5_999, 100)]);
    expect(reasons).toEqual([reason]);
    expect(found).toMatchObject({ seals: 2, position: '5999' });
    expect(reasonsOf(12 + bound, [first, misfit]).reasons).toEqual([reason]);
  });

  test('a gap is named once, and again after the next seal', () => {
    const seals = [sealAt(11, 10, 100), sealAt(20_000, 19_999, 100)];
    const { reasons } = reasonsOf(45_000, seals);
    const places = [`#${12 + bound}`, `#${20_000 + bound + 1}`];
    expect(reasons.map((reason) => reason.split(':')[0])).toEqual(places);
  });
});

describe('a change of the key', () => {
  const rotation = makeRotation(privateKey, other, { ...head, eventsMax: 100 });
  const third = generateKeyPairSync('ed25519').privateKey;
  const rotationReason = (data: typeof rotation, facts: Against) =>
    sealEventReason({ type: 'SealingKeyRotated', data }, facts);

  test('fits the log and the key that it was made of, also where no key is trusted yet', () => {
    expect(rotationReason(rotation, against)).toBeUndefined();
    expect(rotationReason(rotation, { logHash: head.logHash })).toBeUndefined();
    expect(rotation).toMatchObject({
      oldKeyId: keyIdOf(publicKey),
      newKeyId: keyIdOf(publicKeyOf(other)),
    });
  });

  const byThird = makeRotation(third, other, head);
  const toThird = makeRotation(privateKey, third, head);
  test.each([
    [
      'to a key that the old one never signed',
      { newPublicKey: toThird.newPublicKey, newKeyId: toThird.newKeyId },
      'the new key is not signed by the old one',
    ],
    ['signed by a third key', { signature: byThird.signature }, 'the new key is not signed by'],
    ['that the new key did not sign', { newSignature: toThird.newSignature }, 'the old key is not'],
    ['with another number of events to the next seal', { eventsMax: 9_999 }, 'the new key is not'],
    ['at another position', { position: '35' }, 'the new key is not signed by the old one'],
    ['with another key id', { newKeyId: '0'.repeat(16) }, 'its key is not the one that its id'],
  ])('%s does not fit', (_, change, reason) => {
    expect(rotationReason({ ...rotation, ...change }, against)).toMatch(reason);
  });

  test('of a key that is not trusted, or over another head, does not fit', () => {
    expect(rotationReason(byThird, against)).toMatch(/^it was sealed with another key/);
    const logHash = 'cd'.repeat(32);
    expect(rotationReason(rotation, { ...against, logHash })).toBe(
      'the log is not the one that was sealed at position 36',
    );
  });
});
