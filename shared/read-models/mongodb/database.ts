/** The database behind its circuit breaker, and the generations of read models in it, one of them served. */
import { within } from '../../runtime/back-off.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import { againAfterBreak, clientOf, connected, mongoFailureOf } from './client.ts';
import { FORM, type StoredControl, type StoredParking, type StoredPayment } from './documents.ts';

/** No call outlives these, whatever the client's own time-outs do. */
const READ_MS_MAX = 2500;
const WRITE_MS_MAX = 5000;
const PROBE_MS = 250;
const CLOSED = 'the read models are closed';

const inTime = <T>(ms: number, run: () => Promise<T>): Promise<T> =>
  within(
    ms,
    run(),
    () => new ReadModelsUnavailable(`the read models did not answer within ${ms} ms`),
  );

/**
 * Every call ends within its timeout; after one without a response, calls are rejected until the server answers
 * `probe`. Cockatiel's breaker would try the server with a request's call, which would wait for it.
 */
const createCircuitBreaker = (
  probe: () => Promise<unknown>,
  onProbeFailed: () => void,
  onOpen: () => void,
) => {
  let stopped = false;
  let openedBy: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  const tryServer = async (): Promise<void> => {
    try {
      await inTime(READ_MS_MAX, probe);
      openedBy = undefined;
    } catch {
      onProbeFailed();
      planProbe();
    }
  };
  const planProbe = (): void => {
    if (!stopped) timer = setTimeout(tryServer, PROBE_MS).unref();
  };
  const open = (reason: string): void => {
    if (openedBy !== undefined || stopped) return;
    openedBy = reason;
    onOpen();
    planProbe();
  };
  const rejection = (): string | undefined => (stopped ? CLOSED : openedBy);

  return {
    isOpen: (): boolean => rejection() !== undefined,
    /** Throws ReadModelsUnavailable for an error that `mongoFailureOf` knows, and when the time is over. */
    call: async <T>(ms: number, run: () => Promise<T>): Promise<T> => {
      const reason = rejection();
      if (reason !== undefined) throw new ReadModelsUnavailable(reason);
      try {
        return await inTime(ms, run);
      } catch (error) {
        const failure =
          error instanceof ReadModelsUnavailable
            ? { reason: error.message, gone: true }
            : mongoFailureOf(error);
        if (failure === undefined) throw error;
        if (failure.gone) open(failure.reason);
        throw new ReadModelsUnavailable(stopped ? CLOSED : failure.reason);
      }
    },
    stop: (): void => {
      stopped = true;
      clearTimeout(timer);
    },
  };
};

/** A process may learn so late that another one has switched generations. */
export const SERVED_MS_MAX = 1000;

/** For a read that a server answers at once. */
export const quick = { maxTimeMS: READ_MS_MAX };

export const SERVED = 'served';

/** Connects with its first call; each call ends in time, else throws ReadModelsUnavailable. */
export const openMongoDatabase = (url: string, onDown = (): void => undefined) => {
  const client = clientOf(url);
  const db = client.db();
  const breaker = createCircuitBreaker(
    () => connected(client).then(() => db.command({ ping: 1 })),
    // The client can wait for ever at a connection that has ended. Closed, it begins anew.
    () => void client.close().catch(() => undefined),
    onDown,
  );
  const once = <T>(ms: number, run: () => Promise<T>): Promise<T> =>
    breaker.call(ms, () => connected(client).then(run));
  /** Runs a call that may take `ms` milliseconds, once more after a broken connection. */
  const call = <T>(ms: number, run: () => Promise<T>): Promise<T> =>
    once(ms, () => run().catch(againAfterBreak(run)));
  return {
    db,
    control: db.collection<StoredControl>(`${FORM}_control`),
    call,
    read: <T>(run: () => Promise<T>) => call(READ_MS_MAX, run),
    write: <T>(run: () => Promise<T>) => call(WRITE_MS_MAX, run),
    /** Not once more: for a write that finds another version where it was stored before. */
    writeOnce: <T>(run: () => Promise<T>) => once(WRITE_MS_MAX, run),
    generationOf: (n: number) => ({
      n,
      payments: db.collection<StoredPayment>(`${FORM}_${n}_payments`),
      parked: db.collection<StoredParking>(`${FORM}_${n}_parked`),
      checkpointId: `checkpoint_${n}`,
    }),
    isDown: breaker.isOpen,
    close: async () => {
      breaker.stop();
      await client.close();
    },
  };
};
export type Database = ReturnType<typeof openMongoDatabase>;
export type Generation = ReturnType<Database['generationOf']>;

/** Generation 1 is served until the control document names another; then `onOther` is called. */
export const createServed = (
  { control, read, generationOf }: Pick<Database, 'control' | 'read' | 'generationOf'>,
  onOther: () => void,
) => {
  let served = { atMs: Number.NEGATIVE_INFINITY, ...generationOf(1) };
  const set = (n: number, atMs = performance.now()): void => {
    if (n !== served.n) onOther();
    served = { atMs, ...generationOf(n) };
  };
  const look = async (): Promise<Generation> => {
    // The response says what was served when the server read it, and may have been long on its way.
    const atMs = performance.now();
    const found = await read(() => control.findOne({ _id: SERVED }, quick));
    if (atMs >= served.atMs) set(found?.generation ?? 1, atMs);
    return served;
  };
  let looking: Promise<Generation> | undefined;
  const now = async (): Promise<Generation> => {
    if (performance.now() - served.atMs < SERVED_MS_MAX) return served;
    // Responses to two looks may cross: the checkpoint would be the new generation's, documents the old one's.
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  return {
    /** Looked up where the last look-up is too old. */
    now,
    /** Reads the served generation, again after a switch meanwhile: a dropped collection reads as empty. */
    read: async <T>(step: (from: Generation) => Promise<T>): Promise<T> => {
      const from = await now();
      const result = await step(from);
      const after = await now();
      return after.n === from.n ? result : step(after);
    },
    set: (n: number): void => set(n),
    forget: (): void => {
      served.atMs = Number.NEGATIVE_INFINITY;
      looking = undefined;
    },
  };
};
export type Served = ReturnType<typeof createServed>;
