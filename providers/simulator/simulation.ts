/** The simulated provider (gaps §13); the in-process driver and the HTTP server serve it. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Durability } from '../../shared/runtime/sqlite.ts';
import type { OperationOrder } from '../port.ts';
import { openLedger, type Recorded, type WaitingOperation } from './ledger.ts';
import {
  asksShopper,
  behaviourOf,
  CARRIED_OUT,
  decideOperation,
  NOT_AUTHENTICATED,
} from './rules.ts';
import { type CardBehaviour, SLOW_CARD_MS } from './test-cards.ts';

/** NOT_REACHABLE: the call never arrived. SILENT: it gets no response. Neither writes anything. */
type Carried =
  | Recorded
  | WaitingOperation
  | { outcome: 'RESPONSE_LOST' | 'NOT_REACHABLE' | 'SILENT' };

export type KnownOperation = Recorded | WaitingOperation | { outcome: 'AT_WORK' };

const AUTHENTICATION_TIMEOUT_MS = 900_000;

/** Its functions throw, or reject, only when the ledger fails. Throws what `openLedger` throws. */
export const openSimulation = (
  file: string,
  durability: Durability = 'NORMAL',
  authenticationTimeoutMs = AUTHENTICATION_TIMEOUT_MS,
) => {
  const ledger = openLedger(file, durability);
  const closing = new AbortController();
  const atWork = new Map<string, Promise<Carried>>();

  const record = async (operation: OperationOrder, behaviour?: CardBehaviour): Promise<Carried> => {
    const decide = () => decideOperation(operation, ledger.authorization);
    const recorded = await ledger.record(operation, decide, behaviour);
    const isLost = behaviour === 'ANSWER_LOST' && recorded.outcome === 'RECORDED';
    return isLost ? { outcome: 'RESPONSE_LOST' } : recorded;
  };
  const recordLater = (operation: OperationOrder): Promise<Carried> => {
    const work = wait(SLOW_CARD_MS, undefined, { signal: closing.signal })
      .then(() => record(operation))
      .finally(() => atWork.delete(operation.operationId));
    atWork.set(operation.operationId, work);
    return work;
  };

  return {
    ...ledger,
    operate: async (operation: OperationOrder): Promise<Carried> => {
      const { operationId } = operation;
      const running = atWork.get(operationId);
      if (running !== undefined) return running;
      const behaviour = behaviourOf(operation);
      // Most cards have no behaviour and skip this look-up: their insert finds a repeat by itself.
      const known = behaviour && ledger.find(operationId);
      if (known !== undefined) return known;
      if (asksShopper(operation)) {
        const expiresAt = new Date(Date.now() + authenticationTimeoutMs).toISOString();
        return ledger.await(operation, expiresAt);
      }
      if (behaviour === 'NOT_REACHABLE') return { outcome: 'NOT_REACHABLE' };
      if (behaviour === 'TIMES_OUT') return { outcome: 'SILENT' };
      return behaviour === 'SLOW' ? recordLater(operation) : record(operation, behaviour);
    },
    find: (operationId: string): KnownOperation | undefined =>
      ledger.find(operationId) ?? (atWork.has(operationId) ? { outcome: 'AT_WORK' } : undefined),
    fence: (operationId: string): Exclude<KnownOperation, WaitingOperation> =>
      atWork.has(operationId) ? { outcome: 'AT_WORK' } : ledger.fence(operationId),
    /** A button of the page. Undefined where no such page is; `seen`: it counts, else it came too late. */
    press: async (secret: string, authenticated: boolean) => {
      const found = ledger.authentication(secret);
      if (found === undefined) return undefined;
      if (Date.now() >= Date.parse(found.expiresAt)) return { ...found, seen: false };
      const outcome = authenticated ? CARRIED_OUT : NOT_AUTHENTICATED;
      const kept = await ledger.record(found, () => outcome);
      const seen = kept.outcome === 'RECORDED' && kept.entry.outcome === outcome.outcome;
      return { ...found, seen };
    },
    /** Operations still at work were not carried out, and never will be. */
    close: (): void => {
      closing.abort();
      ledger.close();
    },
  };
};

export type Simulation = ReturnType<typeof openSimulation>;
