/** The last verification of the log and comparison with the provider's ledger, by any process. */
import { z } from 'zod';
import type { KeyDocument } from '../shared/read-models/key-document.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { jsonValueOf } from '../shared/runtime/json.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import {
  breakKeyOf,
  changesIn,
  type LogBreak,
  type LogBreaks,
  type NamedBreaks,
} from './breaks.ts';

const broken = z.object({
  position: z.string(),
  stream: z.string(),
  revision: z.int(),
  reason: z.string(),
  digest: z.string().optional(),
});

/** `over`: how much was read, empty for a recheck of standing faults; `keys`: faults, the first if many. */
const faults = z.object({
  count: z.int().min(0),
  keys: z.array(z.string()),
  what: z.string(),
  over: z.array(z.number()),
});
export type Faults = z.infer<typeof faults>;

const standing = faults.extend({ since: z.string() });
type Standing = z.infer<typeof standing>;

const checkRecord = z.object({
  lastOkMs: z.number().min(0),
  lastRunMs: z.number().min(0),
  broken: broken.optional(),
  /** Until the same check over at least as much finds it no more (gaps §25). */
  standing: standing.optional(),
  /** Payments of which an event could not be read. */
  unreadable: z.array(z.string()).optional(),
  /** Keys of the breaks that the last verification named: they alone can be acknowledged (gaps §25). */
  named: z.array(z.string()).optional(),
  /** Boxes that the last look at the keys found to be at fault, the first if many. */
  boxes: z.array(z.object({ stream: z.string(), reason: z.string() })).optional(),
});
export type CheckRecord = z.infer<typeof checkRecord>;

const NEVER: CheckRecord = { lastOkMs: 0, lastRunMs: 0 };

const isoOf = (ms: number): string => new Date(ms).toISOString();

/** A record of before `standing` was kept. */
const withStanding = (record: CheckRecord): CheckRecord => {
  const { broken, lastRunMs } = record;
  if (broken === undefined || record.standing !== undefined) return record;
  const known = faultsOfBreaks({ count: 1, named: [broken] }, [0]);
  return { ...record, standing: { ...known, since: isoOf(lastRunMs) } };
};

/** The next run writes a damaged one anew. */
export const parseCheckRecord = (text = ''): CheckRecord =>
  withStanding(checkRecord.catch(NEVER).parse(jsonValueOf(text)));

export const faultsOfBreaks = (
  { count, named }: Pick<LogBreaks, 'count' | 'named'>,
  over: Faults['over'],
): Faults => {
  const [first] = named;
  const at = first?.stream ? `${first.stream} at revision ${first.revision}, ` : '';
  const where = first && `${at}${first.reason}`;
  const many = count > 1 ? ` in ${count} places, first` : '';
  const what = `The event log is not as it was written${many}: ${where ?? 'its first break is not known'}`;
  return { count, keys: named.map(breakKeyOf), what, over };
};

/** Another fault than those that stood begins a new time, so that an acknowledgement is not of it. */
export const standingAfter = (
  before: Standing | undefined,
  found: Faults,
  now: string,
): Standing | undefined => {
  if (before === undefined) return found.count === 0 ? undefined : { ...found, since: now };
  const isLess =
    found.over.length > 0 && before.over.some((much, at) => (found.over[at] ?? 0) < much);
  if (found.count === 0) return isLess ? before : undefined;
  const isKnown =
    found.count <= before.count && found.keys.every((key) => before.keys.includes(key));
  return {
    count: isLess ? Math.max(found.count, before.count) : found.count,
    keys: [...new Set([...found.keys, ...(isLess ? before.keys : [])])],
    what: found.what,
    over: found.over.map((much, at) => Math.max(much, before.over[at] ?? 0)),
    since: isKnown ? before.since : now,
  };
};

export type CheckResult = {
  faults: Faults;
  broken?: LogBreak | undefined;
  unreadable?: string[] | undefined;
  named?: string[] | undefined;
  /** Left out where the keys were not looked at. */
  boxes?: CheckRecord['boxes'];
};

/** Of a verification of the whole log: an event that cannot be read is no fault of the log. */
export const resultOfBreaks = (breaks: NamedBreaks, over: Faults['over']): CheckResult => {
  const changes = changesIn(breaks);
  const [broken] = changes.named;
  return { faults: faultsOfBreaks(changes, over), broken, named: breaks.named.map(breakKeyOf) };
};

const recordAfter = (
  before: CheckRecord,
  { faults, broken, unreadable, named, boxes = before.boxes }: CheckResult,
  lastRunMs: number,
): CheckRecord => {
  const standing = standingAfter(before.standing, faults, isoOf(lastRunMs));
  return {
    lastRunMs,
    lastOkMs: faults.count === 0 ? lastRunMs : before.lastOkMs,
    ...(broken && { broken }),
    ...(standing && { standing }),
    ...(unreadable && { unreadable }),
    ...(named && { named }),
    ...(boxes && { boxes }),
  };
};

const laterOf = (one: CheckRecord, other: CheckRecord): CheckRecord =>
  one.lastRunMs > other.lastRunMs ? one : other;

const ATTEMPTS_MAX = 5;

/** A result that cannot be kept counts until this process ends, and is told; no function throws. */
export const openCheckRecord = (
  document: KeyDocument,
  logger: Pick<Logger, 'warn'>,
  nowMs: () => number = Date.now,
) => {
  let record = NEVER;
  let saving: Promise<unknown> = Promise.resolve();

  /** On top of what another process has kept meanwhile. */
  const save = async (before: CheckRecord, result: CheckResult, ranMs: number): Promise<void> => {
    for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
      const stored = await document.load();
      const next = recordAfter(laterOf(before, parseCheckRecord(stored?.text)), result, ranMs);
      if (!(await document.save(JSON.stringify(next), stored?.version ?? 0))) continue;
      record = laterOf(record, next);
      return;
    }
  };

  return {
    now: (): CheckRecord => record,
    load: async (): Promise<void> => {
      const stored = await document.load().catch(() => undefined);
      // A later result of this process, which could not be kept, still counts.
      if (stored !== undefined) record = laterOf(record, parseCheckRecord(stored.text));
    },
    note: async (result: CheckResult): Promise<void> => {
      const before = record;
      const ranMs = nowMs();
      record = recordAfter(before, result, ranMs);
      saving = saving
        .then(() => save(before, result, ranMs))
        .catch((error: unknown) =>
          logger.warn(
            { reason: reasonOf(error) },
            'the result of a check could not be kept: other processes, and the next start, do not know it',
          ),
        );
      await saving;
    },
    /** Once each result so far is kept, or could not be. */
    saved: () => saving,
  };
};

export type VerificationNotes = {
  record: ReturnType<typeof openCheckRecord>;
  logger: Pick<Logger, 'error'>;
  metrics: Pick<Metrics, 'logBroken' | 'chainLastOk' | 'chainBreaks'>;
};

/** Keeps what each verification of the whole log finds, with a line of its first change. Never throws. */
export const noteVerifications =
  ({ record, logger, metrics }: VerificationNotes) =>
  async (
    breaks: NamedBreaks,
    over: Faults['over'],
    boxes?: CheckRecord['boxes'],
  ): Promise<CheckResult> => {
    const result = { ...resultOfBreaks(breaks, over), boxes };
    if (result.broken !== undefined) {
      const { position, stream, revision, reason } = result.broken;
      logger.error(
        { position, stream, revision, reason },
        'the event log is not as it was written: change nothing, and see docs/runbook.md, LOG_BROKEN',
      );
    }
    const saved = record.note(result);
    // A break that a signed manifest showed stands although the log's own chain is whole.
    const isWhole = record.now().standing === undefined;
    metrics.logBroken.set(isWhole ? 0 : 1);
    if (isWhole) metrics.chainLastOk.set(Math.floor(Date.now() / 1000));
    else metrics.chainBreaks.inc();
    await saved;
    return result;
  };
