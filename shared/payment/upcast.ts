/** Turns old stored events into current ones, a hop from version n to n + 1; none is rewritten. */
import { EVENT_VERSIONS, type EventType } from './events.ts';
import { takeApart } from './response.ts';

type Hop = (data: unknown) => unknown;

/** Keyed by the version they start from. */
type Hops = Partial<Record<EventType, Record<number, Hop>>>;

/** Throws CannotUpcast where the version is newer than this code or a hop is missing. */
export type Upcast = (type: EventType, version: number, data: unknown) => unknown;

/** `message` names type and versions, never data. */
export class CannotUpcast extends Error {
  override name = 'CannotUpcast';
}

export const upcastOver =
  (hops: Hops, versions: Record<EventType, number>): Upcast =>
  (type, version, data) => {
    const current = versions[type];
    if (version > current)
      throw new CannotUpcast(`version ${version} of ${type} is newer than ${current}`);
    let upcast = data;
    for (let from = version; from < current; from++) {
      const hop = hops[type]?.[from];
      if (hop === undefined) throw new CannotUpcast(`no hop from version ${from} of ${type}`);
      upcast = hop(upcast);
    }
    return upcast;
  };

/** Texts of a person stood in the clear. */
const withClearGroup: Hop = (data) => {
  const { card, details, ...others } = data as Parameters<typeof takeApart>[0];
  const { group, ...open } = takeApart({ card, details });
  return { ...others, ...open, personal: { clear: group } };
};
const withClearReason: Hop = (data) => {
  const { reason: clear } = Object(data);
  return clear === undefined ? data : { ...Object(data), reason: { clear } };
};

/** A version that is raised in events.ts needs its hop here. */
const HOPS: Hops = {
  PaymentCreated: { 1: withClearGroup },
  PaymentCaptureRequested: { 1: withClearReason },
  PaymentVoidRequested: { 1: withClearReason },
  PaymentRefundRequested: { 1: withClearReason },
  ProviderAheadAcknowledged: {
    // Ledgers were numbered; the number is now an opaque cursor.
    1: (data) => {
      const { sequence, ...others } = data as { sequence: number };
      return { ...others, cursor: String(sequence) };
    },
  },
};

/** The first names of two fields of version 1 of outcome events, which installations hold. */
const OLD_NAMES = new Map([
  ['cause', 'outcome'],
  ['settlement', 'resolution'],
]);
const WITH_OLD_NAMES: ReadonlySet<EventType> = new Set([
  'PaymentAuthorized',
  'PaymentCaptured',
  'PaymentVoided',
  'PaymentRefunded',
  'PaymentFailed',
  'PaymentCaptureDeclined',
  'PaymentVoidDeclined',
  'PaymentRefundDeclined',
]);

/** Stored data under today's names; the same object where it has them. */
export const withNamesOfToday = (type: EventType, version: number, data: unknown): unknown => {
  if (version !== 1 || !WITH_OLD_NAMES.has(type) || typeof data !== 'object' || data === null)
    return data;
  const names = Object.keys(data);
  if (!names.some((name) => OLD_NAMES.has(name))) return data;
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [OLD_NAMES.get(name) ?? name, value]),
  );
};

const throughHops = upcastOver(HOPS, EVENT_VERSIONS);

export const upcast: Upcast = (type, version, data) =>
  throughHops(type, version, withNamesOfToday(type, version, data));
