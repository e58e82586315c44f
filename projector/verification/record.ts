import { z } from 'zod';
import type { LogBreak } from '../../shared/event-store/breaks.ts';
import type { KeyDocument } from '../key-document/port.ts';

const broken = z.object({
  position: z.string(),
  stream: z.string(),
  revision: z.int(),
  reason: z.string(),
  digest: z.string().optional(),
});

const verificationRecord = z.object({
  lastOkMs: z.number().min(0),
  lastRunMs: z.number().min(0),
  broken: broken.optional(),
});
type VerificationRecord = z.infer<typeof verificationRecord>;

const NEVER: VerificationRecord = { lastOkMs: 0, lastRunMs: 0 };

const parse = (text: string): VerificationRecord => {
  try {
    return verificationRecord.parse(JSON.parse(text));
  } catch {
    // Only the time of the next run and two gauges depend on it, and that run writes it anew.
    return NEVER;
  }
};

/** A result that cannot be kept counts until this process ends; no function throws. */
export const openRecord = (document: KeyDocument, nowMs: () => number) => {
  let record = NEVER;
  let saving: Promise<unknown> = Promise.resolve();

  const save = async (): Promise<void> => {
    const version = (await document.load())?.version ?? 0;
    await document.save(JSON.stringify(record), version);
  };

  return {
    now: (): VerificationRecord => record,
    load: async (): Promise<void> => {
      const stored = await document.load().catch(() => undefined);
      const kept = stored === undefined ? NEVER : parse(stored.text);
      // A later result of this process, which could not be kept, still counts.
      if (kept.lastRunMs >= record.lastRunMs) record = kept;
    },
    note: async (found: LogBreak | undefined): Promise<void> => {
      const lastRunMs = nowMs();
      record =
        found === undefined
          ? { lastRunMs, lastOkMs: lastRunMs }
          : { lastRunMs, lastOkMs: record.lastOkMs, broken: found };
      saving = saving.then(save).catch(() => undefined);
      await saving;
    },
  };
};
