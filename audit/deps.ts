/** What the audit routes work with, and what several of them do with a request. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { SealedHead } from '../shared/event-store/seals.ts';
import type { LogBreak } from '../shared/event-store/verify-log.ts';
import type { Recorder } from '../shared/http/access-recorder.ts';
import type { Principal } from '../shared/http/auth/principal.ts';
import { reject } from '../shared/http/errors.ts';
import { EVENT_STREAM, NDJSON, type Streams } from '../shared/http/server/streams.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { MerchantLookup } from './merchants.ts';

export type AuditDeps = {
  store: EventStore;
  readModels: Pick<ReadModelsReader, 'search' | 'getAny' | 'idsAfter' | 'inspect'>;
  /** Records in the log who read what. */
  record: Recorder;
  merchants: MerchantLookup;
  streams: Streams;
  /** `MAX_OPERATIONS_PER_PAYMENT` (gaps §18). */
  operationsMax: number;
  /** Called with what every verification of the whole log found: the break, or undefined. */
  onVerified: (broken: LogBreak | undefined) => void;
  /** The public key whose seals are trusted; undefined where this process has none. */
  sealingKey: string | undefined;
  /** The last sealed head that is kept outside the log, as it is now; undefined where there is none. */
  sealedHead: () => SealedHead | undefined;
  /** `now` is true while the log is verified: for one client at a time. */
  verifying: { now: boolean };
};

/** The only merchant whose events the actor may see; undefined where the actor may see all. */
export const onlyOf = ({ merchantId }: Principal): string | undefined =>
  merchantId === '*' ? undefined : merchantId;

/** The content of a response that is no JSON, for the API document. */
export const asLines = { [NDJSON]: z.string() };
/** The same for server-sent events. */
export const asEvents = { [EVENT_STREAM]: z.string() };

/** The position that a `from` parameter names; null is the start of the log. */
export const startOf = (from: string | undefined): Position | null =>
  from === undefined || from === 'start' ? null : from;

/** Rejects a `from` that is no position of the store (its RangeError). Throws any other error on. */
export const rejectPosition = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (!(error instanceof RangeError)) throw error;
  return reject(reply, 'INVALID_REQUEST', ['from must be start or a position of the log']);
};
