/** Asks the provider about one payment; fences, records and changes nothing (ADR-0062). */
import {
  type ActionRequired,
  MISMATCH,
  OTHER_PROVIDER,
  type Provider,
} from '../../../providers/port.ts';
import { asUnreadable, UnreadableStream } from '../../../shared/event-store/errors.ts';
import type { LaterResult } from '../../../shared/payment/commands.ts';
import { decideLater } from '../../../shared/payment/decide.ts';
import { isNeverCarriedOut, type Operation } from '../../../shared/payment/state.ts';
import { within } from '../../../shared/runtime/back-off.ts';
import { fewAtOnce } from '../../../shared/runtime/scheduling.ts';
import type { CommandDeps } from '../../deps.ts';
import type { LoadedPayment } from '../../payment-log.ts';
import { questionAbout } from '../../recovery/ask.ts';
import { questionAboutPayment } from '../../recovery/later-results.ts';
import type { PaymentReconciliation } from './contract.ts';
import { type Difference, ledgerIdOf } from './differences.ts';

export type LookUpResult = Exclude<Awaited<ReturnType<Provider['lookUp']>>, ActionRequired>;

type Compared = PaymentReconciliation['operations'][number];
type Judged = Pick<Compared, 'finding' | 'difference' | 'why'>;

/** Less than a gateway waits for a response. */
const MS_MAX = 10_000;
const NO_ENTRY: LookUpResult = { outcome: 'NOT_FOUND' };
const LATE: LookUpResult = { outcome: 'UNKNOWN', reason: 'timeout' };

const differs = (difference: Difference['kind'], why: string): Judged => ({
  finding: 'DIFFERS',
  difference,
  why,
});

const judgedWithoutEntry = ({ ended }: Operation): Judged => {
  switch (ended?.outcome) {
    case undefined:
      return { finding: 'OPEN', why: 'no outcome in the log, and no entry at the provider so far' };
    case 'APPROVED':
      return differs('MISSING_AT_PROVIDER', 'the log says APPROVED, the provider has no entry');
    case 'DECLINED':
      return { finding: 'NO_ENTRY', why: 'declined; the provider has no entry of it' };
    default:
      return { finding: 'AGREES', why: 'never carried out, and the provider has no entry' };
  }
};

const whyNotKnown = ({ provider }: Operation, reason: string): string =>
  reason === OTHER_PROVIDER
    ? `it was sent to ${provider}, and another provider is set`
    : `the provider did not say (${reason})`;

export const judge = (operation: Operation, found: LookUpResult): Judged => {
  const { ended, failedLater } = operation;
  if (found.outcome === 'NOT_FOUND') return judgedWithoutEntry(operation);
  if (found.outcome === 'UNKNOWN') {
    return found.reason === MISMATCH
      ? differs('OPERATION_DIFFERS', 'the provider has another amount, currency or payment there')
      : { finding: 'NOT_KNOWN', why: whyNotKnown(operation, found.reason) };
  }
  const said = found.outcome;
  if (ended === undefined)
    return differs('UNRESOLVED_IN_LOG', `the provider says ${said}, the log has no outcome yet`);
  if (ended.outcome === said) return { finding: 'AGREES', why: `both say ${said}` };
  if (ended.outcome === 'APPROVED' && failedLater)
    return { finding: 'AGREES', why: 'approved, and it came back later' };
  return differs(
    isNeverCarriedOut(operation) ? 'NEVER_SENT_IN_LOG' : 'OUTCOME_DIFFERS',
    `the log says ${ended.outcome}, the provider says ${said}`,
  );
};

type AskDeps = {
  provider: Pick<Provider, 'lookUp'>;
  paymentLog: Pick<CommandDeps['paymentLog'], 'load'>;
};
type About = Pick<Difference, 'paymentId' | 'operationId'>;

/** As `agreesOn` of a reconciliation. */
export const providerAgrees = async (
  { provider, paymentLog }: AskDeps,
  { paymentId, operationId }: About,
): Promise<boolean> => {
  const payment = await paymentLog.load(paymentId, 'store').catch(asUnreadable);
  // Other alarms say so.
  if (payment instanceof UnreadableStream) return true;
  const operation = payment?.state.operations.find((one) => one.operationId === operationId);
  if (payment === undefined || operation === undefined) return false;
  const found = await provider.lookUp(questionAbout(payment, operation));
  // What another one was sent is not compared.
  if (found.outcome === 'UNKNOWN' && found.reason === OTHER_PROVIDER) return true;
  const { finding, why } = judge(operation, found.outcome === 'ACTION_REQUIRED' ? NO_ENTRY : found);
  if (finding === 'NOT_KNOWN') throw new Error(why);
  return finding === 'AGREES';
};

/** Whether a difference that a comparison found is there still; true where that cannot be told. */
export const stillDiffers = async (
  deps: AskDeps,
  { kind, ...about }: Pick<Difference, 'kind'> & About,
): Promise<boolean> => {
  try {
    const payment = await deps.paymentLog.load(about.paymentId, 'store');
    const isInLog = payment?.events.some(({ event }) => ledgerIdOf(event) === about.operationId);
    // What the log has by now, the next comparison compares.
    if (kind === 'MISSING_IN_LOG') return !isInLog;
    // Neither the provider's word on an operation nor its state has each amount, kind and payment.
    if (kind === 'AMOUNT_DIFFERS' || kind === 'OPERATION_DIFFERS') return true;
    return !(await providerAgrees(deps, about));
  } catch {
    return true;
  }
};

const lookUpAll = async (
  provider: Pick<Provider, 'lookUp'>,
  payment: LoadedPayment,
  operations: readonly Operation[],
): Promise<ReadonlyMap<string, LookUpResult>> => {
  const found = new Map<string, LookUpResult>();
  let isLate = false;
  const all = fewAtOnce(operations, async (one) => {
    if (isLate) return;
    const said = await provider.lookUp(questionAbout(payment, one));
    // Nothing is carried out before the shopper was there.
    found.set(one.operationId, said.outcome === 'ACTION_REQUIRED' ? NO_ENTRY : said);
  });
  await within(MS_MAX, all, () => new Error('late')).catch(() => {
    isLate = true;
  });
  return found;
};

/** Whether the provider says what the log could record and has not; true also where it does not say. */
const isUntold = async (
  { laterResults }: Pick<Provider, 'laterResults'>,
  { state }: LoadedPayment,
): Promise<boolean> => {
  const response = laterResults(questionAboutPayment(state));
  const found = await within(MS_MAX, response, () => new Error('late')).catch(() => LATE);
  if (found.outcome !== 'FOUND') return true;
  const isNew = (result: LaterResult) =>
    decideLater(state, { kind: 'later', operationId: '', result }).length > 0;
  return found.results.some(isNew);
};

export const reconcilePayment = async (
  provider: Pick<Provider, 'lookUp' | 'laterResults'>,
  payment: LoadedPayment,
  limit: number,
): Promise<Pick<PaymentReconciliation, 'ok' | 'operations' | 'notCompared'>> => {
  const { operations, currency } = payment.state;
  const compared = operations.slice(-limit);
  const untold = isUntold(provider, payment);
  const found = await lookUpAll(provider, payment, compared);
  const rows = compared.map((operation): Compared => {
    const { operationId, amount, requestedAt: revision, ended } = operation;
    const { kind } = questionAbout(payment, operation);
    const said = found.get(operationId) ?? LATE;
    return {
      operationId,
      kind,
      amount,
      currency,
      revision,
      ...(ended !== undefined && { log: ended.outcome }),
      provider: said,
      ...judge(operation, said),
    };
  });
  const notCompared = operations.length - rows.length;
  const isGood = ({ finding }: Compared) => finding === 'AGREES' || finding === 'NO_ENTRY';
  const ok = notCompared === 0 && rows.every(isGood) && !(await untold);
  return { ok, operations: rows, notCompared };
};
