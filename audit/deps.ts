/** What the audit routes work with, and what several of them share. */
import { z } from 'zod';
import type { LogBreak } from '../shared/event-store/breaks.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import type { HeadFile } from '../shared/event-store/seals.ts';
import type { Recorder } from '../shared/http/access-recorder.ts';
import type { Principal } from '../shared/http/auth/principal.ts';
import { EVENT_STREAM, NDJSON, type Streams } from '../shared/http/server/streams.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { MerchantLookup } from './merchants.ts';

export type AuditDeps = {
  store: EventStore;
  readModels: Pick<ReadModelsReader, 'search' | 'getAny' | 'idsAfter' | 'inspect' | 'parked'>;
  /** Records in the log who read what. */
  record: Recorder;
  merchants: MerchantLookup;
  streams: Streams;
  /** `MAX_OPERATIONS_PER_PAYMENT` (gaps §18). */
  operationsMax: number;
  /** The names of the provider that is set (ADR-0247); empty where this process does not know it. */
  providers: readonly string[];
  /** Called with what every verification of the whole log found: the break, or undefined. */
  onVerified: (broken: LogBreak | undefined) => void;
  /** The public key whose seals are trusted; undefined where this process has none. */
  sealingKey: string | undefined;
  /** The heads that are kept outside the log, as they are now; undefined where there is none. */
  keptHeads: () => HeadFile | undefined;
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
