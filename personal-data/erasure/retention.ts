/** Erases texts of a person once an ended payment has not changed for as long as is set (gaps §19). */
import { RECORD_BUDGET_MS, startBudget } from '../../shared/http/request-budget.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import type { PaymentSearch } from '../../shared/read-models/port.ts';
import * as backOff from '../../shared/runtime/back-off.ts';
import { newOperationId } from '../../shared/runtime/ids.ts';
import type { ErasureDeps } from './routes.ts';

/** `days`: since a payment changed last. */
type RetentionDeps = Pick<ErasureDeps, 'commands' | 'readModels' | 'erasures'> & { days: number };

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
  { commands: { paymentLog, queues, nowMs }, erasures, days }: RetentionDeps,
  paymentId: string,
): Promise<boolean> => {
  const operationId = newOperationId();
  const actor = 'retention';
  const ids = { requestId: operationId, correlationId: operationId, causationId: operationId };
  const ticket = `ERASE_AFTER_DAYS/${days}`;
  // Those who set the days have decided for each payment: no second one is asked.
  const about = { reason: 'RETENTION_ENDED', ticket, actor, approvers: 1 } as const;
  const command = { kind: 'erase', operationId, ...about, atMs: nowMs(), holdDays: days } as const;
  const executed = await queues.run(paymentId, () =>
    paymentLog.execute(paymentId, command, { actor, ...ids }, startBudget(RECORD_BUDGET_MS)),
  );
  return executed.kind === 'done' && erasures.carryOut(executed.payment.events);
};

export const watchRetention = (
  deps: RetentionDeps,
  startTimer: backOff.StartTimer = backOff.startBackgroundTimer,
): { stop(): void } => {
  const { commands, readModels, days } = deps;
  let stopped = false;
  /** Where the next page begins; undefined: with the newest payment that can be due, an hour later. */
  let after: PaymentSearch['after'];

  const turn = async (): Promise<void> => {
    const before = new Date(commands.nowMs() - days * DAY_MS).toISOString();
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
    if (payments > 0) commands.logger.info({ payments, days }, 'erased past their retention');
    if (failed.length > 0) throw failed[0];
  };

  const round = async (): Promise<void> => {
    await turn().catch((error) => commands.logger.warn({ err: error }, NOT_ERASED));
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
