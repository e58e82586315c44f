/**
 * Carries out in the store of keys what the log says was erased: at once, and again after each start, because a
 * restored store of keys may be older than the log.
 */
import { decode, isReadable } from '../../shared/event-store/codec.ts';
import type { EventStore, LogJob, Position, RecordedEvent } from '../../shared/event-store/port.ts';
import { logPages, scanLog } from '../../shared/event-store/scan-log.ts';
import { createQueues } from '../../shared/runtime/scheduling.ts';
import type { KeyStore } from '../port.ts';
import { ERASED, type Erasure, erasuresIn, type NoteErasure } from './ledger.ts';

type Range = { after: Position | null; end: Position };
type Step = { reached: Position | null; found: RecordedEvent[] };

/** Each checkpoint waits for a disk. */
const PAGES_A_STEP = 40;

/** Ends before an event that cannot be read. */
export const findErasures: LogJob<Range, Step, void> = async function* (
  { stored },
  { after, end },
  { signal },
) {
  let [reached, pages] = [after, 0];
  for await (const { page } of logPages(stored, after, end, signal)) {
    const texts = page.filter(({ text }) => text.includes(ERASED));
    const found = texts.map((one) => decode(one)).filter(isReadable);
    reached = page.at(-1)?.position ?? reached;
    pages += 1;
    if (found.length > 0 || pages % PAGES_A_STEP === 0) yield { reached, found };
  }
  yield { reached, found: [] };
};

export const createErasures = (
  store: EventStore,
  keys: Pick<KeyStore, 'read' | 'erase' | 'checkpoint' | 'saveCheckpoint'>,
  note?: NoteErasure,
) => {
  const queues = createQueues();

  const eraseOnce = async (erasure: Erasure): Promise<void> => {
    const found = await keys.read(erasure.keys);
    // Its line came before.
    if (erasure.keys.every((key) => found.get(key) === 'erased')) return;
    await note?.(erasure);
    await keys.erase(erasure.keys);
  };

  /** Of these events, those of one payment in turn; whether there is one. Throws what the store of keys and the ledger throw. */
  const carryOut = async (events: readonly RecordedEvent[]): Promise<boolean> => {
    const erasures = erasuresIn(events);
    for (const erasure of erasures) await queues.run(erasure.paymentId, () => eraseOnce(erasure));
    return erasures.length > 0;
  };

  /** Those of the log since the last call, in a thread where the store has one. Throws as `carryOut`, and what the log throws. */
  const repeat = async (signal: AbortSignal): Promise<void> => {
    const end = await store.end();
    const saved = await keys.checkpoint();
    // A new store of keys has none of an earlier event.
    if (saved === undefined) return keys.saveCheckpoint(end ?? '');
    if (end === null || end === saved) return;
    // Another log than the saved one is read whole.
    const isOfLog = saved !== '' && (await store.hashAt(saved)) !== null;
    const range = { after: isOfLog ? saved : null, end };
    for await (const step of scanLog(store, findErasures, range, { signal, calls: {} })) {
      await carryOut(step.found);
      await keys.saveCheckpoint(step.reached ?? '');
    }
  };
  return { carryOut, repeat };
};
export type Erasures = ReturnType<typeof createErasures>;
