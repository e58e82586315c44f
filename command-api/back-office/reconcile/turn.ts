/**
 * Whose turn it is to compare, and what came of the last ones (ADR-0263). Where the document is damaged
 * or cannot be kept, each process compares.
 */
import { z } from 'zod';
import type { KeyDocument } from '../../../shared/read-models/key-document.ts';
import { orElse } from '../../../shared/runtime/error-text.ts';
import { DIFFERENCE_KINDS } from './differences.ts';

const count = z.int().min(0);

const keptTurn = z.object({
  /** When the last turn began; 0: never. */
  ranMs: z.number(),
  /** Up to then what was made elsewhere was looked for. */
  lookedMs: z.number().optional(),
  /** The last comparison of the schedule. */
  compared: z.object({ atMs: z.number(), tookMs: z.number() }).optional(),
  found: z
    .object({
      byKind: z.record(z.enum(DIFFERENCE_KINDS), count),
      unreadable: count,
      notCompared: count,
    })
    .optional(),
});
export type KeptTurn = z.infer<typeof keptTurn>;

const read = (text = ''): KeptTurn => orElse({ ranMs: 0 }, () => keptTurn.parse(JSON.parse(text)));

const ATTEMPTS_MAX = 5;

/** No function throws. */
export const openTurns = (document: KeyDocument, nowMs: () => number) => {
  const load = async () => {
    const stored = await document.load().catch(() => undefined);
    return { version: stored?.version ?? 0, kept: read(stored?.text) };
  };
  const save = (kept: KeptTurn, version: number): Promise<boolean> =>
    document.save(JSON.stringify(kept), version).catch(() => true);

  return {
    /** What was kept before, and whether this process has the turn: no process had one within `everyMs`. */
    take: async (everyMs: number): Promise<{ kept: KeptTurn; isTaken: boolean }> => {
      const { version, kept } = await load();
      const agoMs = nowMs() - kept.ranMs;
      // A clock that was ahead holds no other process up.
      const isDone = kept.ranMs > 0 && agoMs >= 0 && agoMs < everyMs;
      return { kept, isTaken: !isDone && (await save({ ...kept, ranMs: nowMs() }, version)) };
    },
    keep: async (change: Partial<KeptTurn>): Promise<void> => {
      for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
        const { version, kept } = await load();
        if (await save({ ...kept, ...change }, version)) return;
      }
    },
  };
};
