/**
 * The log hash of a store that keeps none (EventStoreDB): the projector carries it on, and the seals keep it. A
 * projector that starts or takes over reads on from the last seal, not from the log's start (ADR-0033).
 */
import { GENESIS_HASH, logHashes } from '../../shared/event-store/chain.ts';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { isSealEvent } from '../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { keysOf } from './seals.ts';
import type { RecordedSeal } from './stored-seals.ts';

const PAGE = 1000;

type Reached = {
  position: Position | null;
  logHash: string;
  last: RecordedSeal | undefined;
  /** Whether the event of that seal was passed: a head before it would be a copy of what is sealed. */
  isPast: boolean;
  unsealed: number;
};

const isSeal = (event: LogEvent): event is RecordedSeal =>
  event.stream === SEALS_STREAM && 'event' in event && isSealEvent(event.event);

const step = (from: Reached, event: LogEvent & { logHash: string }): Reached => {
  const { position, logHash } = event;
  const at = { ...from, position, logHash };
  if (position === from.last?.event.data.position) at.unsealed = 0;
  else if (event.stream !== SEALS_STREAM) at.unsealed += 1;
  if (!isSeal(event) || event.revision < (from.last?.revision ?? 0)) return at;
  return { ...at, last: event, isPast: true };
};

type Reads = Pick<EventStore, 'readAll'>;

const startAt = (seal: RecordedSeal | undefined, last: RecordedSeal | undefined): Reached => {
  const { position = null, logHash = GENESIS_HASH } = seal?.event.data ?? {};
  return { position, logHash, last, isPast: last === undefined, unsealed: 0 };
};

const readOn = async ({ readAll }: Reads, from: Reached, to: Position) => {
  let at = from;
  while (at.position !== to) {
    const page = await readAll(at.position, PAGE, to);
    if (page.length === 0) return at === from ? undefined : at;
    at = page.map(logHashes(at.logHash)).reduce(step, at);
  }
  return at;
};

/** From the newest seal before the position, else from the start. Undefined where no event is there. */
export const reach = async (store: Reads, seals: readonly RecordedSeal[], to: Position) => {
  const last = seals.at(-1);
  for (const seal of [...seals.toReversed(), undefined]) {
    const found = await readOn(store, startAt(seal, last), to);
    if (found !== undefined) return found.position === to ? found : undefined;
  }
  return undefined;
};

type RunningHashOptions = {
  store: Pick<EventStore, 'readAll'>;
  logId(): Promise<string>;
  /** Stops sealing after a seal by another key. */
  publicKey: string;
  /** Once they have been checked. Throws LogMisfit, and what the store throws. */
  seals(): Promise<readonly RecordedSeal[]>;
};

/** A seal is made this near to the end of the log, where a verification still looks for its place. */
const NEAR_END = 1000;

/** A SealSource, which the projector leads from event to event. */
export const carryHash = ({ store, publicKey, logId, seals }: RunningHashOptions) => {
  let at: Reached | undefined;
  let follows = false;

  const canSeal = (reached: Reached | undefined): reached is Reached => {
    if (!follows || reached?.isPast !== true) return false;
    const { last } = reached;
    return last === undefined || keysOf(last.event).after === publicKey;
  };

  return {
    /** Undefined where no event is there. Throws what `seals` and the store throw. */
    logHashAt: async (position: Position): Promise<string | undefined> => {
      if (at?.position !== position) at = await reach(store, await seals(), position);
      return at?.logHash;
    },
    follow: async (from: Position | null): Promise<void> => {
      // Another process may have made some meanwhile.
      const known = await seals();
      const last = known.at(-1);
      const isThere = at?.position === from && at.last?.revision === last?.revision;
      if (!isThere) at = from === null ? startAt(undefined, last) : await reach(store, known, from);
      follows = true;
    },
    /** With their log hashes; `taken` follows once they are applied. */
    next: (events: readonly LogEvent[]): { events: LogEvent[]; taken(): void } => {
      if (at === undefined) return { events: [...events], taken: () => undefined };
      const linked = events.map(logHashes(at.logHash));
      return {
        events: linked,
        // From where it is then: a seal may have been made meanwhile.
        taken: () => {
          at = at && linked.reduce(step, at);
        },
      };
    },
    leave: (): void => {
      follows = false;
    },
    last: () => at?.last,
    unsealed: async (): Promise<number> => (canSeal(at) ? at.unsealed : 0),
    head: async () => {
      if (!canSeal(at) || at.position === null) return undefined;
      const { position, logHash, unsealed } = at;
      if ((await store.readAll(position, NEAR_END)).length === NEAR_END) return undefined;
      return { head: { log: await logId(), position, logHash }, unsealed };
    },
    sealed: (seal: RecordedSeal, count: number): void => {
      if (at === undefined) return;
      const unsealed = at.unsealed - count;
      // The subscription may deliver it before its append resolves.
      const isPast = at.last !== undefined && at.last.revision >= seal.revision;
      at = isPast ? { ...at, unsealed } : { ...at, last: seal, isPast, unsealed };
    },
  };
};
export type RunningHash = ReturnType<typeof carryHash>;
