/**
 * Turns stored events of old versions into events of the current versions: one function per hop, from
 * version n to n + 1 of one event type. Stored events are never rewritten; every reader of them
 * upcasts (codec.ts).
 */
import { EVENT_VERSIONS, type EventType } from './events.ts';
import { withNamesOfToday } from './first-names.ts';

/** Turns an event's data as stored with version n into its data at version n + 1. Pure. */
type Hop = (data: unknown) => unknown;

/** The hops of each event type, keyed by the version they start from. */
type Hops = Partial<Record<EventType, Record<number, Hop>>>;

/**
 * Turns stored data into data at the current version.
 * Throws CannotUpcast when the version is newer than this code or a hop is missing.
 */
export type Upcast = (type: EventType, version: number, data: unknown) => unknown;

/** No hops lead from a stored version to the current one. `message` names type and versions, never data. */
export class CannotUpcast extends Error {
  override name = 'CannotUpcast';
}

/** Makes an upcast over a table of hops that ends at the given current versions. */
export const upcastOver =
  (hops: Hops, versions: Record<EventType, number>): Upcast =>
  (type, version, data) => {
    const current = versions[type];
    if (version > current) {
      throw new CannotUpcast(`version ${version} of ${type} is newer than ${current}`);
    }
    let upcast = data;
    for (let from = version; from < current; from++) {
      const hop = hops[type]?.[from];
      if (hop === undefined) throw new CannotUpcast(`no hop from version ${from} of ${type}`);
      upcast = hop(upcast);
    }
    return upcast;
  };

/** Every hop. A version that is raised in EVENT_VERSIONS needs its hop here. */
const HOPS: Hops = {
  ProviderAheadAcknowledged: {
    // A provider's ledger was numbered; now it has an opaque cursor, which is that number.
    1: (data) => {
      const { sequence, ...others } = data as { sequence: number };
      return { ...others, cursor: String(sequence) };
    },
  },
};

const throughHops = upcastOver(HOPS, EVENT_VERSIONS);

/** The upcast of the stored events of this service. */
export const upcast: Upcast = (type, version, data) =>
  throughHops(type, version, withNamesOfToday(type, version, data));
