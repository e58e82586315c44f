import { GENESIS_HASH } from '../chain.ts';
import { allReadable, type EncodedEvent, encode } from '../codec.ts';
import { AppendOutcomeUnknown, RevisionConflict, StoreUnavailable } from '../errors.ts';
import type { Expected, NewEvent, RecordedEvent } from '../port.ts';
import type { LiveTail } from './live-tail.ts';
import { decodeRow } from './log-reader.ts';
import { type AppendJob, type AppendOutcome, Failed, type Failure } from './messages.ts';
import type { Thread } from './thread.ts';

// The memory must not fill while a disk does not respond.
const WAITING_APPENDS_MAX = 10_000;

export type SqliteEventStoreStats = {
  appends: number;
  commits: number;
  events: number;
};

type Logger = { warn(details: object, message: string): void };

type Waiting = {
  stream: string;
  expected: Expected;
  encoded: EncodedEvent[];
  resolve: (events: RecordedEvent[]) => void;
  reject: (error: Error) => void;
};

type Stored = Extract<AppendOutcome, { first: number }>;

const jobOf = ({ stream, expected, encoded }: Waiting): AppendJob => {
  const { revision, hash } = expected === 'none' ? { revision: -1, hash: GENESIS_HASH } : expected;
  const events = encoded.map(({ recorded: { id, hash }, text }) => ({ id, hash, text }));
  return { stream, revision, hash, events };
};

function appendError({ message, unknown }: Failure): Error {
  return unknown ? new AppendOutcomeUnknown(message) : new StoreUnavailable(message);
}

/** All appends of a turn, or since the last group, become one transaction with one fsync. */
export function groupCommit(thread: Thread, tail: LiveTail, logger: Logger | undefined) {
  const counters: SqliteEventStoreStats = { appends: 0, commits: 0, events: 0 };
  let waiting: Waiting[] = [];
  let working: Promise<void> | undefined;
  let rejecting = false;

  async function work(): Promise<void> {
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const group = waiting;
      waiting = [];
      await commit(group);
    }
    working = undefined;
  }

  async function commit(group: Waiting[]): Promise<void> {
    const outcomes = await thread.call('append', group.map(jobOf)).catch((error: Failed) => error);
    if (outcomes instanceof Failed) rejectGroup(group, outcomes.failure);
    else resolveGroup(group, outcomes);
  }

  function rejectGroup(group: Waiting[], failure: Failure): void {
    if (!rejecting && failure.kind !== 'fatal')
      logger?.warn({}, `appends are rejected, event store: ${failure.message}`);
    rejecting = true;
    for (const { reject } of group) reject(appendError(failure));
  }

  function noteTaken(): void {
    if (rejecting)
      logger?.warn({}, 'appends are accepted again, event store: it can be written to');
    rejecting = false;
  }

  function resolveGroup(group: Waiting[], outcomes: AppendOutcome[]): void {
    const eventsBefore = counters.events;
    for (const [index, one] of group.entries()) resolveOne(one, outcomes[index] as AppendOutcome);
    if (counters.events === eventsBefore) return;
    counters.commits += 1;
    tail.announce();
    noteTaken();
  }

  function resolveOne({ stream, encoded, resolve, reject }: Waiting, outcome: AppendOutcome): void {
    try {
      if ('first' in outcome) resolve(placed(encoded, outcome));
      else if ('repeated' in outcome) resolve(allReadable(outcome.repeated.map(decodeRow)));
      else reject(new RevisionConflict(`${stream} ${outcome.conflict}`));
    } catch (error) {
      reject(error as Error);
    }
  }

  function placed(encoded: EncodedEvent[], { first, logHashes }: Stored): RecordedEvent[] {
    counters.appends += 1;
    counters.events += encoded.length;
    return encoded.map(({ recorded }, index) => {
      const logHash = logHashes[index] as string;
      const event = Object.assign(recorded, { position: String(first + index), logHash });
      tail.push(event);
      return event;
    });
  }

  return {
    counters,
    async append(stream: string, expected: Expected, events: NewEvent[]): Promise<RecordedEvent[]> {
      if (waiting.length >= WAITING_APPENDS_MAX) {
        throw new StoreUnavailable('too many appends wait for the disk');
      }
      const encoded = encode(stream, expected, events);
      return new Promise((resolve, reject) => {
        waiting.push({ stream, expected, encoded, resolve, reject });
        working ??= work();
      });
    },
    async ping(): Promise<void> {
      if (!rejecting) return;
      await thread.call('probe').catch(({ failure }: Failed) => {
        throw new StoreUnavailable(`not writable: ${failure.message}`);
      });
      noteTaken();
    },
    done: (): Promise<void> => working ?? Promise.resolve(),
  };
}
