/** Erases texts of a person once an ended payment has not changed for as long as is set (gaps §19). */
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import type { PaymentSearch } from '../../shared/read-models/port.ts';
import * as backOff from '../../shared/runtime/back-off.ts';
import { newOperationId } from '../../shared/runtime/ids.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { ErasureDeps } from './routes.ts';

type RetentionDeps = Pick<ErasureDeps, 'erasable' | 'readModels' | 'erasures'> & {
  /** Since a payment changed last. */
  days: number;
  logger: Pick<Logger, 'info' | 'warn'>;
};

const DAY_MS = 86_400_000;
const EVERY_MS = 3_600_000;
// A page at a time, so that requests go first.
const PAGE = 100;
const PAGES_APART_MS = 1_000;
const NOT_ERASED = 'payments past their retention could not be erased; they are tried again';

/** By its document, so that no stream is read in vain; the rules decide on the log. */
const isDue = ({ personal, updatedAt }: PaymentReadModel, before: string): boolean =>
  personal.erasedAt === undefined && personal.clear === undefined && updatedAt <= before;

/** False where the rules refuse it, as of a payment that is held. Throws what the stores throw. */
const eraseOne = async (
  { erasable, erasures, days }: RetentionDeps,
  paymentId: string,
): Promise<boolean> => {
  const id = newOperationId();
  const actor = 'retention';
  const context = { actor, requestId: id, correlationId: id, causationId: id };
  const ticket = `ERASE_AFTER_DAYS/${days}`;
  // Those who set the days have decided for each payment: no second one is asked.
  const about = { reason: 'RETENTION_ENDED', ticket, actor, approvers: 1 } as const;
  const order = { kind: 'erase', ...about, atMs: erasable.nowMs(), holdDays: days } as const;
  const executed = await erasable.execute(paymentId, order, context);
  return executed.kind === 'done' && erasures.carryOut(executed.payment.events);
};

export const watchRetention = (
  deps: RetentionDeps,
  startTimer: backOff.StartTimer = backOff.startBackgroundTimer,
): { stop(): void } => {
  const { erasable, readModels, logger, days } = deps;
  let stopped = false;
  /** Where the next page begins; undefined: with the newest payment that can be due, an hour later. */
  let after: PaymentSearch['after'];

  const turn = async (): Promise<void> => {
    const before = new Date(erasable.nowMs() - days * DAY_MS).toISOString();
    const { documents, searchedTo } = await readModels.search({ to: before, after }, PAGE);
    after = searchedTo;
    let payments = 0;
    const failed: unknown[] = [];
    for (const { paymentId, body, damaged } of documents) {
      if (stopped) break;
      if (damaged || !isDue(JSON.parse(body), before)) continue;
      const isErased = await eraseOne(deps, paymentId).catch((error) => void failed.push(error));
      if (isErased) payments += 1;
    }
    if (payments > 0) logger.info({ payments, days }, 'erased past their retention');
    if (failed.length > 0) throw failed[0];
  };

  const round = async (): Promise<void> => {
    await turn().catch((error) => logger.warn({ err: error }, NOT_ERASED));
    if (!stopped)
      cancel = startTimer(() => void round(), after === undefined ? EVERY_MS : PAGES_APART_MS);
  };
  let cancel = startTimer(() => void round(), 0);
  return {
    stop: () => {
      stopped = true;
      cancel();
    },
  };
};
