/** What the thread of the deliverer (thread-scan.ts) and the one that serves requests (thread.ts) send each other. */
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreFileUnusable,
  StoreUnavailable,
  StreamNotWhole,
  UnreadableStream,
} from '../../shared/event-store/errors.ts';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ScanTools } from '../../shared/runtime/scan.ts';
import type { SpanCounts } from '../../shared/runtime/tracing.ts';
import type { Attempt } from '../../shared/webhooks/delivery-row.ts';
import type { Turn } from './deliverer.ts';
import type { DelivererStatus } from './deliverer-status.ts';

/** How far the log may be read, and whose turn it is. */
export type News = { end: Position | null; turn: Turn };

/** What the metrics count of an attempt. */
export type CountedAttempt = Pick<Attempt, 'outcome' | 'latencyMs'>;

/** What is new since the note before; `status` is the last one. */
export type Note = {
  status: DelivererStatus;
  attempts: readonly CountedAttempt[];
  spans: SpanCounts;
};

/** What the thread begins with. Holds a secret: never log it. */
export type ThreadArgs = {
  settings: Pick<Config, 'dataDir' | 'mongoUrl' | 'mode' | 'traces'>;
  allowedNetworks: readonly string[];
  secret: string;
  news: News;
};

/** What the thread calls in the one that serves requests. */
export type ThreadCalls = {
  /** Resolves when there are other news than these, or in a moment. */
  news(seen: News): Promise<News>;
  /** As the port's; its errors come as they are thrown, by `asPortError`. */
  append: EventStore['append'];
  note(note: Note): Promise<void>;
  log(level: keyof Logger, fields: object, message: string): Promise<void>;
};

/** The functions by which the thread calls. */
export const callsOf = ({ call }: Pick<ScanTools, 'call'>): ThreadCalls => {
  const through =
    <N extends keyof ThreadCalls>(name: N) =>
    (...args: Parameters<ThreadCalls[N]>) =>
      call(name, ...args) as ReturnType<ThreadCalls[N]>;
  return {
    news: through('news'),
    append: (...args) =>
      through('append')(...args).catch((error: unknown) => {
        throw asPortError(error);
      }),
    note: through('note'),
    log: through('log'),
  };
};

const CLASSES: Readonly<Record<string, new (message: string) => Error>> = {
  REVISION_CONFLICT: RevisionConflict,
  EVENT_STORE_UNAVAILABLE: StoreUnavailable,
  EVENT_STORE_FILE_UNUSABLE: StoreFileUnusable,
  APPEND_OUTCOME_UNKNOWN: AppendOutcomeUnknown,
  UNREADABLE_STREAM: UnreadableStream,
  STREAM_NOT_WHOLE: StreamNotWhole,
};

/** An error of the event store that came from another thread, of its own class again. */
const asPortError = (error: unknown): unknown => {
  const { code, message } = Object(error);
  const OfCode = CLASSES[String(code)];
  return OfCode === undefined ? error : new OfCode(message);
};
