/** What the audit routes work with, and what several of them do with a request. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { Recorder } from '../shared/http/access-recorder.ts';
import type { Principal } from '../shared/http/auth/tokens.ts';
import { reject } from '../shared/http/errors.ts';
import { EVENT_STREAM, NDJSON, type Streams } from '../shared/http/server/streams.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { MerchantLookup } from './merchants.ts';

export type AuditDeps = {
  store: EventStore;
  readModels: Pick<ReadModelsReader, 'search' | 'getAny'>;
  /** Writes into the log that somebody has read. */
  record: Recorder;
  merchants: MerchantLookup;
  streams: Streams;
  /** Hears of every verification of the whole log. */
  onVerified: (ok: boolean) => void;
  /** The whole log is verified for one reader at a time. */
  verifying: { now: boolean };
};

/** The merchant whose events alone the sender may see; undefined: all. */
export const onlyOf = ({ merchantId }: Principal): string | undefined =>
  merchantId === '*' ? undefined : merchantId;

/** Whether the client accepts this type rather than, say, JSON. */
export const accepts = ({ request }: FastifyReply, type: string): boolean =>
  request.headers.accept?.toLowerCase().includes(type) === true;

/** For the API document: text that is no JSON. */
export const asLines = { [NDJSON]: z.string() };
export const asEvents = { [EVENT_STREAM]: z.string() };

/** Where a reader wants to begin: null is the start of the log. */
export const startOf = (from: string | undefined): Position | null =>
  from === undefined || from === 'start' ? null : from;

/** What a store says to a text that is no position of it. */
export const rejectPosition = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (!(error instanceof RangeError)) throw error;
  return reject(reply, 'INVALID_REQUEST', ['from must be start or a position of the log']);
};
