/** Drives the simulated provider in this process, and serves its page (gaps §13, §21). */
import type { FastifyInstance } from 'fastify';
import type { LaterResult } from '../../shared/payment/commands.ts';
import { within } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import {
  type Approved,
  AT_WORK,
  AUTHORIZATION_MS_MAX,
  type Declined,
  type LedgerEntry,
  type LedgerPage,
  MISMATCH,
  type OperationOrder,
  type OperationQuestion,
  type Provider,
  type Unknown,
  unknown,
} from '../port.ts';
import type { SimulatedEntry, WaitingOperation } from './ledger.ts';
import { listeningPort, pagePath, registerPage } from './page.ts';
import {
  behaviourOf,
  CARRIED_OUT,
  cardOfToken,
  type KnownAuthorization,
  laterResultsOf,
  networkCodesOf,
} from './rules.ts';
import { openSimulation, type Simulation } from './simulation.ts';
import { type CardBehaviour, LATER_BEHAVIOURS } from './test-cards.ts';

const END_PAGE = 100;

const lineOf = ({ sequence, ...entry }: SimulatedEntry): LedgerEntry => ({
  cursor: String(sequence),
  ...entry,
});

export const ledgerPageOf = (page: ReturnType<Simulation['list']>): LedgerPage => ({
  ...page,
  entries: page.entries.map(lineOf),
  next: page.next === null ? null : String(page.next),
});

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

const NOTICE_MS = 200;

type Ordered = Parameters<Simulation['record']>[0];

/** As the provider's ledger lists it; undefined for what is no operation. */
const entryOf = (one: LaterResult, { paymentId, amount, currency }: KnownAuthorization) => {
  const about = { paymentId, amount, currency, ...one };
  if (one.kind === 'REFUND_OBSERVED')
    return { ...about, kind: 'REFUND', operationId: one.refundId } as const;
  if (one.kind === 'CAPTURE_OBSERVED')
    return { ...about, kind: 'CAPTURE', operationId: one.reference } as const;
  if (one.kind === 'VOID_OBSERVED')
    return { ...about, kind: 'VOID', operationId: one.reference } as const;
  return undefined;
};

const isLater = (behaviour: CardBehaviour | null | undefined): boolean =>
  behaviour != null && LATER_BEHAVIOURS.has(behaviour);

/** What becomes of a payment by itself: in the ledger with its operation, told a moment later. */
const openHappenings = (simulation: Simulation) => {
  let listener: ((paymentId: string) => void) | undefined;
  const noticeSoon = (paymentId: string, ms = NOTICE_MS): void => {
    setTimeout(() => listener?.(paymentId), ms).unref();
  };

  return {
    /** None once it is closed. */
    onNotice: (next?: typeof listener): void => {
      listener = next;
    },
    noticeSoon,
    follow: async (operation: OperationOrder): Promise<void> => {
      if ('card' in operation && !isLater(behaviourOf(operation))) return;
      const { operationId, authorizationId = operationId }: Ordered = operation;
      const authorization = simulation.authorization(authorizationId);
      if (authorization === undefined || !isLater(authorization.behaviour)) return;
      const { paymentId } = authorization;
      const about = { authorizationId, refunds: [] };
      for (const one of laterResultsOf(about, authorization, Date.now())) {
        const entry = entryOf(one, authorization);
        if (entry !== undefined) await simulation.record(entry, () => CARRIED_OUT);
        // By then it is over.
        if (one.kind === 'DISPUTE') noticeSoon(paymentId, 2 * NOTICE_MS);
      }
      noticeSoon(paymentId);
    },
  };
};

const LATE = new Error('the simulated provider gave no response in time');

const actionOf = (waiting: WaitingOperation, question: Sum, port: number) => {
  if (!isOf(waiting, question)) return unknown(MISMATCH);
  const url = `http://localhost:${port}${pagePath(waiting.secret)}`;
  return { outcome: 'ACTION_REQUIRED', url, expiresAt: waiting.expiresAt } as const;
};

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
  const happening = openHappenings(simulation);
  let portNow = (): number => port;

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
      registerPage(app, simulation, ({ paymentId }) => happening.noticeSoon(paymentId));
    },
    laterResults: (question) =>
      inTime(question.authorizationId, async () => {
        const authorization = simulation.authorization(question.authorizationId);
        const results = authorization && laterResultsOf(question, authorization, Date.now());
        return { outcome: 'FOUND', results: results ?? [] };
      }),
    // It gives notice of each, and loses no notice.
    disputes: async () => [],
    madeElsewhere: async () => ({ outcome: 'FOUND', made: [] }),
    paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
    onNotice: happening.onNotice,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    describeToken: async (token) => {
      const card = cardOfToken(token);
      return card === undefined ? { outcome: 'NOT_FOUND' } : { outcome: 'DESCRIBED', ...card };
    },
    execute: (operation) =>
      inTime(operation.operationId, async () => {
        const carried = await simulation.operate(operation);
        await happening.follow(operation);
        switch (carried.outcome) {
          case 'RECORDED':
            return responseFrom(carried.entry, operation);
          case 'RESPONSE_LOST':
            return unknown('answer_lost');
          case 'ACTION_REQUIRED':
            return actionOf(carried, operation, portNow());
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
          : actionOf(found, question, portNow());
      }),
    fence: (question) =>
      inTime(question.operationId, async () => {
        const found = simulation.fence(question.operationId);
        if (found.outcome === 'FENCED') return { outcome: 'FENCED' };
        return found.outcome === 'AT_WORK' ? unknown(AT_WORK) : responseFrom(found.entry, question);
      }),
    ledger: async (after, limit, since) =>
      ledgerPageOf(simulation.list(Number(after ?? 0), limit, since)),
    ledgerEnd: async (after) => simulation.end(Number(after ?? 0), END_PAGE).map(lineOf),
    close: async () => {
      happening.onNotice();
      simulation.close();
    },
  };
};
