/** Drives the simulated provider in this process, and serves its page (gaps §13, §21). */
import type { FastifyInstance } from 'fastify';
import type { LaterResult } from '../../shared/payment/commands.ts';
import { within } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import {
  type ActionRequired,
  type Approved,
  AT_WORK,
  type Declined,
  type LedgerEntry,
  type LedgerPage,
  MISMATCH,
  type OperationOrder,
  type OperationQuestion,
  type PaymentQuestion,
  type Provider,
  type Unknown,
} from '../port.ts';
import type { SimulatedEntry, Waiting } from './ledger.ts';
import { listeningPort, pagePath, registerPage } from './page.ts';
import {
  AUTHORIZATION_MS_MAX,
  behaviourOf,
  cardOfToken,
  isLaterBehaviour,
  laterResultsOf,
  networkCodesOf,
} from './rules.ts';
import { openSimulation, type Simulation } from './simulation.ts';

const END_PAGE = 100;

const lineOf = ({ sequence, ...entry }: SimulatedEntry): LedgerEntry => ({
  cursor: String(sequence),
  ...entry,
});

export const pageOf = ({ entries, next, since }: ReturnType<Simulation['list']>): LedgerPage => ({
  entries: entries.map(lineOf),
  next: next === null ? null : String(next),
  since,
});

const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });

type Sum = Pick<OperationQuestion, 'amount' | 'currency'>;
const isOf = (known: Sum, { amount, currency }: Sum): boolean =>
  known.amount === amount && known.currency === currency;

const responseFrom = (entry: SimulatedEntry, question: Sum): Approved | Declined | Unknown => {
  if (!isOf(entry, question)) return unknown(MISMATCH);
  const { authorizationExpiresAt, providerReference } = entry;
  if (entry.outcome === 'APPROVED')
    return { outcome: 'APPROVED', providerReference, authorizationExpiresAt };
  return {
    outcome: 'DECLINED',
    failureCode: entry.failureCode ?? 'UNKNOWN_DECLINE',
    providerFailureCode: entry.providerFailureCode,
    ...networkCodesOf(entry),
  };
};

/** Counted from the operation, or from the notice of the dispute. */
const NOTICE_MS = 200;

/** The change as the provider's ledger lists it. */
const madeElsewhere = (one: LaterResult, authorized: number) => {
  if (one.kind === 'REFUND_OBSERVED')
    return { kind: 'REFUND', operationId: one.refundId, amount: one.amount } as const;
  if (one.kind === 'CAPTURE_OBSERVED')
    return { kind: 'CAPTURE', operationId: one.reference, amount: one.amount } as const;
  if (one.kind === 'VOID_OBSERVED')
    return { kind: 'VOID', operationId: one.reference, amount: authorized } as const;
  return undefined;
};

const laterResults = (simulation: Simulation) => {
  const seen = new Set<string>();
  let listener: ((paymentId: string) => void) | undefined;

  const noticeSoon = (paymentId: string): void => {
    setTimeout(() => listener?.(paymentId), NOTICE_MS).unref();
  };

  return {
    /** None once it is closed. */
    onNotice: (next?: typeof listener): void => {
      listener = next;
    },
    noticeSoon,
    noticeOf: (operation: OperationOrder): void => {
      const behaviour =
        'authorizationId' in operation
          ? simulation.authorization(operation.authorizationId)?.behaviour
          : behaviourOf(operation);
      if (isLaterBehaviour(behaviour)) noticeSoon(operation.paymentId);
    },
    resultsOf: (question: PaymentQuestion): LaterResult[] => {
      const { authorizationId, paymentId } = question;
      const authorization = simulation.authorization(authorizationId);
      if (authorization === undefined) return [];
      const results = laterResultsOf(question, authorization, seen.has(authorizationId));
      const { currency } = authorization;
      for (const one of results) {
        const elsewhere = madeElsewhere(one, authorization.amount);
        if (elsewhere) simulation.recordElsewhere({ ...elsewhere, paymentId, currency });
      }
      const isOpen = results.some((one) => one.kind === 'DISPUTE' && one.status === 'OPEN');
      if (isOpen && authorization.behaviour !== 'DISPUTED') {
        seen.add(authorizationId);
        noticeSoon(paymentId);
      }
      return results;
    },
  };
};

const LATE = new Error('the simulated provider gave no response in time');

/** The simulator in this process; `register` serves the shopper's page. */
export type Simulator = Provider & { register(app: FastifyInstance): void };

export const openSimulator = async (options: {
  file: string;
  timeoutMs: number;
  /** The service's address for the shopper's page, until it listens. */
  port?: number;
  authenticationTimeoutMs?: number;
  logger?: Pick<Logger, 'error'> | undefined;
}): Promise<Simulator> => {
  const { file, timeoutMs, port = 0, authenticationTimeoutMs, logger } = options;
  const simulation = openSimulation(file, 'NORMAL', authenticationTimeoutMs);
  const later = laterResults(simulation);
  let portNow = (): number => port;

  const actionOf = (waiting: Waiting, question: Sum): ActionRequired | Unknown => {
    if (!isOf(waiting, question)) return unknown(MISMATCH);
    const url = `http://localhost:${portNow()}${pagePath(waiting.secret)}`;
    return { outcome: 'ACTION_REQUIRED', url, expiresAt: waiting.expiresAt };
  };
  const inTime = async <T>(operationId: string, call: () => Promise<T>): Promise<T | Unknown> => {
    try {
      return await within(timeoutMs, call(), () => LATE);
    } catch (error) {
      if (error === LATE) return unknown('timeout');
      logger?.error({ operationId }, 'the simulated provider could not use its ledger');
      return unknown('failed');
    }
  };

  return {
    register: (app) => {
      portNow = () => listeningPort(app) ?? port;
      registerPage(app, simulation, ({ paymentId }) => later.noticeSoon(paymentId));
    },
    laterResults: (question) =>
      inTime(question.authorizationId, async () => ({
        outcome: 'FOUND',
        results: later.resultsOf(question),
      })),
    // It gives notice of each, and loses no notice.
    disputes: async () => [],
    madeElsewhere: async () => ({ outcome: 'FOUND', made: [] }),
    paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
    onNotice: later.onNotice,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    describeToken: async (token) => {
      const card = cardOfToken(token);
      return card === undefined ? { outcome: 'NOT_FOUND' } : { outcome: 'DESCRIBED', ...card };
    },
    execute: (operation) =>
      inTime(operation.operationId, async () => {
        const carried = await simulation.operate(operation);
        later.noticeOf(operation);
        switch (carried.outcome) {
          case 'RECORDED':
            return responseFrom(carried.entry, operation);
          case 'RESPONSE_LOST':
            return unknown('answer_lost');
          case 'ACTION_REQUIRED':
            return actionOf(carried, operation);
          case 'FENCED':
            return { outcome: 'NOT_SENT', byProvider: true, reason: 'fenced' };
          case 'NOT_REACHABLE':
            return { outcome: 'NOT_SENT', byProvider: true };
          case 'SILENT':
            return new Promise<never>(() => undefined);
        }
      }),
    lookUp: (question) =>
      inTime(question.operationId, async () => {
        const found = simulation.find(question.operationId);
        if (found === undefined || found.outcome === 'FENCED') return { outcome: 'NOT_FOUND' };
        if (found.outcome === 'AT_WORK') return unknown(AT_WORK);
        return found.outcome === 'RECORDED'
          ? responseFrom(found.entry, question)
          : actionOf(found, question);
      }),
    fence: (question) =>
      inTime(question.operationId, async () => {
        const found = simulation.fence(question.operationId);
        if (found.outcome === 'FENCED') return { outcome: 'FENCED' };
        return found.outcome === 'AT_WORK' ? unknown(AT_WORK) : responseFrom(found.entry, question);
      }),
    ledger: async (after, limit, since) =>
      pageOf(simulation.list(Number(after ?? 0), limit, since)),
    ledgerEnd: async (after) => simulation.end(Number(after ?? 0), END_PAGE).map(lineOf),
    close: async () => {
      later.onNotice();
      simulation.close();
    },
  };
};
