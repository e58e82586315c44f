/** `openSimulation` is the provider (gaps §13); `openSimulator` drives it in this process. */
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
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
  type ProviderOutcome,
  type Unknown,
} from '../command-api/provider/port.ts';
import type { LaterResult } from '../shared/payment/outcome.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Durability } from '../shared/runtime/sqlite.ts';
import {
  type Ledger,
  openLedger,
  type Recorded,
  type SimulatedEntry,
  type Waiting,
} from './ledger.ts';
import { listeningPort, type Pages, pagePath, registerPage } from './page.ts';
import {
  AUTHENTICATED,
  AUTHORIZATION_MS_MAX,
  asksShopper,
  behaviourOf,
  cardOfToken,
  isLaterBehaviour,
  laterResultsOf,
  NOT_AUTHENTICATED,
  networkCodesOf,
} from './rules.ts';
import { SLOW_CARD_MS } from './test-cards.ts';

/** NOT_REACHABLE: the call never arrived. SILENT: it gets no response. Neither writes anything. */
type Carried =
  | { outcome: 'RECORDED'; entry: SimulatedEntry; responseLost: boolean }
  | { outcome: 'FENCED' }
  | Waiting
  | { outcome: 'NOT_REACHABLE' | 'SILENT' };

export type Known = Recorded | Waiting | { outcome: 'AT_WORK' };

/** Rejects and throws only when the ledger fails. */
export type Simulation = Pages & {
  operate(operation: OperationOrder): Promise<Carried>;
  find(operationId: string): Known | undefined;
  fence(operationId: string): Promise<Exclude<Known, Waiting>>;
  recordElsewhere: Ledger['recordElsewhere'];
  list: Ledger['list'];
  end: Ledger['end'];
  authorization: Ledger['authorization'];
  /** Operations still at work were not carried out, and never will be. */
  close(): void;
};

const AUTHENTICATION_TIMEOUT_MS = 900_000;

export const openSimulation = (
  file: string,
  durability: Durability = 'NORMAL',
  authenticationTimeoutMs = AUTHENTICATION_TIMEOUT_MS,
): Simulation => {
  const ledger = openLedger(file, durability);
  const closing = new AbortController();
  const atWork = new Map<string, Promise<Carried>>();

  const record = async (operation: OperationOrder): Promise<Carried> => {
    const behaviour = behaviourOf(operation);
    const recorded = await ledger.record(operation, behaviour);
    if (recorded.outcome === 'FENCED') return recorded;
    return { ...recorded, responseLost: behaviour === 'ANSWER_LOST' };
  };
  const recordLater = (operation: OperationOrder): Promise<Carried> => {
    const work = wait(SLOW_CARD_MS, undefined, { signal: closing.signal })
      .then(() => record(operation))
      .finally(() => atWork.delete(operation.operationId));
    atWork.set(operation.operationId, work);
    return work;
  };

  return {
    operate: async (operation) => {
      const running = atWork.get(operation.operationId);
      if (running !== undefined) return running;
      const behaviour = behaviourOf(operation);
      // Most cards have no behaviour and skip this look-up: their insert finds a repeat by itself.
      const recorded = behaviour === undefined ? undefined : ledger.find(operation.operationId);
      if (recorded !== undefined) return { ...recorded, responseLost: false };
      if (asksShopper(operation))
        return ledger.await(
          operation,
          new Date(Date.now() + authenticationTimeoutMs).toISOString(),
        );
      if (behaviour === 'NOT_REACHABLE') return { outcome: 'NOT_REACHABLE' };
      if (behaviour === 'TIMES_OUT') return { outcome: 'SILENT' };
      return behaviour === 'SLOW' ? recordLater(operation) : record(operation);
    },
    find: (operationId) =>
      ledger.find(operationId) ?? (atWork.has(operationId) ? { outcome: 'AT_WORK' } : undefined),
    fence: async (operationId) =>
      atWork.has(operationId) ? { outcome: 'AT_WORK' } : ledger.fence(operationId),
    recordElsewhere: ledger.recordElsewhere,
    authentication: ledger.authentication,
    isWaiting: (operationId) => ledger.find(operationId)?.outcome === 'ACTION_REQUIRED',
    press: (secret, authenticated) => {
      const found = ledger.authentication(secret);
      if (found === undefined) return undefined;
      const isLate = Date.now() >= Date.parse(found.expiresAt);
      if (isLate) return { ...found, seen: false };
      const outcome = authenticated ? AUTHENTICATED : NOT_AUTHENTICATED;
      const kept = ledger.complete(found, outcome);
      const seen = kept.outcome === 'RECORDED' && kept.entry.outcome === outcome.outcome;
      return { ...found, seen };
    },
    list: ledger.list,
    end: ledger.end,
    authorization: ledger.authorization,
    close: () => {
      closing.abort();
      ledger.close();
    },
  };
};

const END_PAGE = 100;

const lineOf = ({ sequence, ...entry }: SimulatedEntry): LedgerEntry => ({
  cursor: String(sequence),
  ...entry,
});

export const pageOf = ({ entries, next }: ReturnType<Ledger['list']>): LedgerPage => ({
  entries: entries.map(lineOf),
  next: next === null ? null : String(next),
});

const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });

const responseFrom = (
  entry: SimulatedEntry,
  question: Pick<OperationQuestion, 'amount' | 'currency'>,
): Approved | Declined | Unknown => {
  if (entry.amount !== question.amount || entry.currency !== question.currency)
    return unknown(MISMATCH);
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

type AddressOf = (secret: string) => string;

const actionOf = (
  { secret, expiresAt, amount, currency }: Waiting,
  question: Pick<OperationQuestion, 'amount' | 'currency'>,
  addressOf: AddressOf,
): ActionRequired | Unknown =>
  amount === question.amount && currency === question.currency
    ? { outcome: 'ACTION_REQUIRED', url: addressOf(secret), expiresAt }
    : unknown(MISMATCH);

const executeResponse = (
  carried: Exclude<Carried, { outcome: 'SILENT' }>,
  operation: OperationOrder,
  addressOf: AddressOf,
): ProviderOutcome => {
  if (carried.outcome === 'ACTION_REQUIRED') return actionOf(carried, operation, addressOf);
  if (carried.outcome === 'FENCED')
    return { outcome: 'NOT_SENT', byProvider: true, reason: 'fenced' };
  if (carried.outcome !== 'RECORDED') return { outcome: 'NOT_SENT', byProvider: true };
  return carried.responseLost ? unknown('answer_lost') : responseFrom(carried.entry, operation);
};

/** Unknown where the call fails or does not end within `timeoutMs`. */
const withinTime = <T>(call: Promise<T | 'SILENT'>, timeoutMs: number, failed: () => void) =>
  new Promise<T | Unknown>((resolve) => {
    const timer = setTimeout(() => resolve(unknown('timeout')), timeoutMs);
    const finish = (response: T | Unknown): void => {
      clearTimeout(timer);
      resolve(response);
    };
    call.then(
      (response) => {
        if (response !== 'SILENT') finish(response);
      },
      () => {
        failed();
        finish(unknown('failed'));
      },
    );
  });

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
  const timers = new Set<NodeJS.Timeout>();
  let listener = (_paymentId: string): void => undefined;

  const noticeSoon = (paymentId: string): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      listener(paymentId);
    }, NOTICE_MS).unref();
    timers.add(timer);
  };

  return {
    onNotice: (next: (paymentId: string) => void): void => {
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
    close: (): void => {
      for (const timer of timers) clearTimeout(timer);
    },
  };
};

/** The simulator in this process; `register` serves the shopper's page. */
export type Simulator = Provider & { register(app: FastifyInstance): void };

export const openSimulator = async ({
  file,
  timeoutMs,
  port = 0,
  authenticationTimeoutMs,
  logger,
}: {
  file: string;
  timeoutMs: number;
  /** The service's address for the shopper's page, until it listens. */
  port?: number;
  authenticationTimeoutMs?: number;
  logger?: Pick<Logger, 'error'> | undefined;
}): Promise<Simulator> => {
  const simulation = openSimulation(file, 'NORMAL', authenticationTimeoutMs);
  let portNow = (): number => port;
  const addressOf: AddressOf = (secret) => `http://localhost:${portNow()}${pagePath(secret)}`;
  const ask = <T>(call: () => Promise<T | 'SILENT'>, operationId: string) =>
    withinTime(call(), timeoutMs, () =>
      logger?.error({ operationId }, 'the simulated provider could not use its ledger'),
    );
  const later = laterResults(simulation);
  const foundResponse = (
    found: Exclude<Known, Waiting | { outcome: 'FENCED' }>,
    question: OperationQuestion,
  ) => (found.outcome === 'AT_WORK' ? unknown(AT_WORK) : responseFrom(found.entry, question));

  return {
    register: (app) => {
      portNow = () => listeningPort(app) ?? port;
      registerPage(app, simulation, ({ paymentId }) => later.noticeSoon(paymentId));
    },
    laterResults: (question) =>
      ask(
        async () => ({ outcome: 'FOUND', results: later.resultsOf(question) }),
        question.authorizationId,
      ),
    // It gives notice of each, and loses no notice.
    disputes: async () => [],
    endedAuthorizations: async () => ({ outcome: 'FOUND', paymentIds: [] }),
    paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
    onNotice: later.onNotice,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    describeToken: async (token) => {
      const card = cardOfToken(token);
      return card === undefined ? { outcome: 'NOT_FOUND' } : { outcome: 'DESCRIBED', ...card };
    },
    execute: (operation) =>
      ask(async () => {
        const carried = await simulation.operate(operation);
        later.noticeOf(operation);
        return carried.outcome === 'SILENT'
          ? 'SILENT'
          : executeResponse(carried, operation, addressOf);
      }, operation.operationId),
    lookUp: (question) =>
      ask(async () => {
        const found = simulation.find(question.operationId);
        if (found === undefined || found.outcome === 'FENCED') return { outcome: 'NOT_FOUND' };
        if (found.outcome === 'ACTION_REQUIRED') return actionOf(found, question, addressOf);
        return foundResponse(found, question);
      }, question.operationId),
    fence: (question) =>
      ask(async () => {
        const found = await simulation.fence(question.operationId);
        return found.outcome === 'FENCED' ? { outcome: 'FENCED' } : foundResponse(found, question);
      }, question.operationId),
    ledger: async (after, limit) => pageOf(simulation.list(Number(after ?? 0), limit)),
    ledgerEnd: async (after) => simulation.end(Number(after ?? 0), END_PAGE).map(lineOf),
    close: async () => {
      later.close();
      simulation.close();
    },
  };
};
