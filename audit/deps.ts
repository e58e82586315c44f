import { z } from 'zod';
import type { EventStore } from '../shared/event-store/port.ts';
import { EVENT_STREAM, NDJSON, type Streams } from '../shared/http/server/streams.ts';
import type { OpenText } from '../shared/payment/state.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { Recorder } from './access-recorder.ts';
import type { noteVerifications } from './check-record.ts';
import type { AuditVerification } from './contract.ts';
import type { MerchantLookup } from './merchants.ts';
import type { HeadFile } from './seals/seals.ts';

export type AuditDeps = {
  store: EventStore;
  readModels: Pick<ReadModelsReader, 'search' | 'getAny' | 'idsAfter' | 'inspect' | 'parked'>;
  record: Recorder;
  merchants: MerchantLookup;
  openText: OpenText;
  streams: Streams;
  /** `MAX_OPERATIONS_PER_PAYMENT` (gaps §18). */
  operationsMax: number;
  /** The names of the provider that is set (ADR-0247); left out where unknown here. */
  providers?: readonly string[];
  /** Before the result of each verification of the whole log: what it named can be acknowledged. */
  noteVerification?: ReturnType<typeof noteVerifications>;
  /** Left out where there is no store of keys. */
  verifyKeys?: ((signal: AbortSignal) => Promise<AuditVerification['keys']>) | undefined;
  /** Of the key whose seals are trusted, in base64url; left out where this process has none. */
  sealingKey?: string | undefined;
  keptHeads?: (() => HeadFile | undefined) | undefined;
};

export const asLines = { [NDJSON]: z.string() };
export const asEvents = { [EVENT_STREAM]: z.string() };
