/**
 * The circuit breaker around MongoDB: every call ends within its timeout, and calls are rejected at once
 * while the server does not answer. Cockatiel's would try the server with the call of a request; here a
 * probe tries it, so that no request waits for a dead server.
 */
import { within } from '../../runtime/back-off.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import { failureOf } from './client.ts';

const PROBE_MS = 250;
const CLOSED = 'the read models are closed';

type CircuitBreakerOptions = {
  /** A command that a running server answers at once. */
  probe(): Promise<unknown>;
  probeMsMax: number;
  onProbeFailed(): void;
  onOpen(): void;
};

const inTime = <T>(ms: number, run: () => Promise<T>): Promise<T> =>
  within(
    ms,
    run(),
    () => new ReadModelsUnavailable(`the read models did not answer within ${ms} ms`),
  );

/** After one call without an answer, calls are rejected until a probe is answered. */
export const createCircuitBreaker = ({
  probe,
  probeMsMax,
  onProbeFailed,
  onOpen,
}: CircuitBreakerOptions) => {
  let stopped = false;
  let openedBy: string | undefined;
  let timer: NodeJS.Timeout | undefined;

  const tryServer = async (): Promise<void> => {
    try {
      await inTime(probeMsMax, probe);
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
    /** Throws ReadModelsUnavailable for an error that `failureOf` knows, and when the time is over. */
    call: async <T>(ms: number, run: () => Promise<T>): Promise<T> => {
      const reason = rejection();
      if (reason !== undefined) throw new ReadModelsUnavailable(reason);
      try {
        return await inTime(ms, run);
      } catch (error) {
        const failure =
          error instanceof ReadModelsUnavailable
            ? { reason: error.message, gone: true }
            : failureOf(error);
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
