/**
 * Up to where log and ledger agreed, and whose turn it is to compare (ADR-0263). A document that is
 * damaged, or does not carry this installation's check, is none: then everything is compared.
 */
import { z } from 'zod';
import { canonicalJson } from '../../shared/event-store/codec.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import type { KeyDocument } from '../../shared/key-document.ts';
import type { Identities } from '../idempotency.ts';
import { DIFFERENCE_KINDS } from './differences.ts';
import type { Mark } from './reconcile.ts';

const count = z.int().min(0);

const keptTurn = z.object({
  /** Of the provider whose ledger `mark` is a place in. */
  provider: z.string().optional(),
  mark: z.object({ position: z.string(), hash: z.string(), cursor: z.string() }).optional(),
  /** The last comparison of everything: its start, and how long it took. */
  whole: z.object({ atMs: z.number(), tookMs: z.number() }).optional(),
  /** Up to then authorizations that ended elsewhere were looked for. */
  lookedMs: z.number().optional(),
  /** 0: never. */
  ranMs: z.number(),
  found: z
    .object({
      byKind: z.record(z.enum(DIFFERENCE_KINDS), count),
      unreadable: count,
      notCompared: count,
    })
    .optional(),
  /** Until then a process compares. */
  untilMs: z.number(),
});
export type KeptTurn = z.infer<typeof keptTurn>;

const sealedTurn = z.object({ kept: z.string(), check: z.string() });
const NEVER: KeptTurn = { ranMs: 0, untilMs: 0 };
/** After the loss of a process another one begins so much later. */
const LEASE_MS = 600_000;

/** No function but `markAt` throws. */
export type Turn = {
  kept(): KeptTurn;
  keep(change: Partial<KeptTurn>): Promise<unknown>;
  /** Throws StoreUnavailable. */
  markAt(mark: Mark): Promise<KeptTurn['mark']>;
  end(): Promise<void>;
};

type TurnOptions = {
  document: KeyDocument;
  checkOf: Identities['checkOf'];
  store: Pick<EventStore, 'hashAt'>;
  provider: string | undefined;
  nowMs(): number;
};

export const openTurns = ({ document, checkOf, store, provider, nowMs }: TurnOptions) => {
  const textOf = (turn: KeptTurn): string => {
    const kept = canonicalJson(turn);
    return JSON.stringify({ kept, check: checkOf(kept) });
  };
  const read = (text: string | undefined): KeptTurn => {
    try {
      const { kept, check } = sealedTurn.parse(JSON.parse(text ?? ''));
      return check === checkOf(kept) ? keptTurn.parse(JSON.parse(kept)) : NEVER;
    } catch {
      return NEVER;
    }
  };

  const hashOf = async (position: string): Promise<string | undefined> => {
    const hashes = await store.hashAt(position).catch((error: unknown) => {
      if (error instanceof RangeError) return null;
      throw error;
    });
    return hashes?.logHash ?? hashes?.hash;
  };
  /** Where another log or ledger was compared, this one never was. */
  const ofThisLog = async (kept: KeptTurn): Promise<KeptTurn> => {
    const { mark, untilMs } = kept;
    if (mark === undefined) return kept;
    const isSame = kept.provider === provider && (await hashOf(mark.position)) === mark.hash;
    return isSame ? kept : { ...NEVER, untilMs };
  };

  const begin = (before: KeptTurn, loaded: number): Turn => {
    let kept = before;
    let version = loaded;
    let saving: Promise<unknown> = Promise.resolve();
    const save = async (): Promise<void> => {
      // After another process has taken over, no version fits any more.
      if (await document.save(textOf(kept), version)) version += 1;
    };
    const keep = (change: Partial<KeptTurn>): Promise<unknown> => {
      kept = { ...kept, provider, ...change };
      saving = saving.then(save).catch(() => undefined);
      return saving;
    };
    const renewing = setInterval(() => keep({ untilMs: nowMs() + LEASE_MS }), LEASE_MS / 3).unref();
    return {
      kept: () => kept,
      keep,
      markAt: async ({ position, cursor }: Mark): Promise<KeptTurn['mark']> => {
        if (position === null || cursor === null) return undefined;
        const hash = await hashOf(position);
        return hash === undefined ? undefined : { position, hash, cursor };
      },
      end: async (): Promise<void> => {
        clearInterval(renewing);
        await keep({ untilMs: 0 });
      },
    };
  };

  return {
    /** Without `turn` another process compares, or has done it within `everyMs`. Throws StoreUnavailable. */
    take: async (everyMs: number): Promise<{ kept: KeptTurn; turn?: Turn }> => {
      // Where nothing can be loaded, nothing can be kept: everything is compared, as by one process.
      const stored = await document.load().catch(() => undefined);
      const kept = await ofThisLog(read(stored?.text));
      const version = stored?.version ?? 0;
      const [agoMs, leftMs] = [nowMs() - kept.ranMs, kept.untilMs - nowMs()];
      // A clock that was ahead holds no other process up.
      const isDone = kept.ranMs > 0 && agoMs >= 0 && agoMs < everyMs;
      if (isDone || (leftMs > 0 && leftMs <= LEASE_MS)) return { kept };
      const taken = { ...kept, untilMs: nowMs() + LEASE_MS };
      const saved = await document.save(textOf(taken), version).catch(() => undefined);
      return saved === false ? { kept } : { kept, turn: begin(taken, version + 1) };
    },
  };
};
