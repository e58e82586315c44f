/** The way to a server that may be gone: every call in its budget, and none that has no chance. */
import { ReadModelsUnavailable } from '../errors.ts';

/** How often a server that did not answer is asked whether it is there again. */
const PROBE_MS = 250;
const CLOSED = 'the read models are closed';

export type Failure = {
  /** One line for the log. */
  reason: string;
  /** True when the server did not answer, false when it refused. */
  gone: boolean;
};

export type DoorOptions = {
  /** A question that any server answers at once. */
  probe(): Promise<unknown>;
  probeMsMax: number;
  /** What an error says about the server; undefined when it is about something else. */
  failureOf(error: unknown): Failure | undefined;
  /** The server has stopped answering. */
  onDown(): void;
};

export type Door = {
  isDown(): boolean;
  /** Throws ReadModelsUnavailable for what `failureOf` knows, and when the time is over. */
  ask<T>(ms: number, run: () => Promise<T>): Promise<T>;
  /** Refuses everybody from here on. */
  close(): void;
};

const within = <T>(ms: number, run: () => Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new ReadModelsUnavailable(`the read models did not answer within ${ms} ms`));
  }, ms);
  return Promise.race([run(), late.promise]).finally(() => clearTimeout(timer));
};

/**
 * After one call without an answer the rest are refused at once, until the server answers a probe:
 * whoever can do without the read models need not wait for them.
 */
export const createDoor = ({ probe, probeMsMax, failureOf, onDown }: DoorOptions): Door => {
  let closed = false;
  let down: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  const look = async (): Promise<void> => {
    try {
      await within(probeMsMax, probe);
      down = undefined;
    } catch {
      planLook();
    }
  };
  const planLook = (): void => {
    if (!closed) timer = setTimeout(look, PROBE_MS).unref();
  };
  const shut = (reason: string): void => {
    if (down !== undefined || closed) return;
    down = reason;
    onDown();
    planLook();
  };
  const rejection = (): string | undefined => (closed ? CLOSED : down);

  return {
    isDown: () => rejection() !== undefined,
    ask: async (ms, run) => {
      const reason = rejection();
      if (reason !== undefined) throw new ReadModelsUnavailable(reason);
      try {
        return await within(ms, run);
      } catch (error) {
        const failure =
          error instanceof ReadModelsUnavailable
            ? { reason: error.message, gone: true }
            : failureOf(error);
        if (failure === undefined) throw error;
        if (failure.gone) shut(failure.reason);
        throw new ReadModelsUnavailable(closed ? CLOSED : failure.reason);
      }
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
};
