/** The deadline of one request, and how far it came by then. */
import { within } from '../runtime/back-off.ts';
import type { Sender } from './request.ts';

/** The time one request may take, waits included (gaps §11, `REQUEST_BUDGET_MS`). */
export type Budget = {
  /** 0 from the deadline on: the request has its response, and nothing may begin for it. */
  leftMs(): number;
  /** Brings the deadline forward to now. */
  end(): void;
};

/** The request's budget is spent. An operation that was begun goes on without it (gaps §7). */
export class BudgetSpent extends Error {
  override name = 'BudgetSpent';
}

/** For recording an outcome or an erasure, which the request's own budget does not bound. */
export const RECORD_BUDGET_MS = 10_000;

export const startBudget = (totalMs: number, startMs: number = performance.now()): Budget => {
  let endMs = startMs + totalMs;
  return {
    leftMs: () => Math.max(0, endMs - performance.now()),
    end: () => {
      endMs = 0;
    },
  };
};

/** Throws BudgetSpent at the deadline, or at the stop, whose reason that is; nothing begins then. */
export const withinBudget = async <T>(
  task: Promise<T>,
  budget: Budget,
  stopping?: AbortSignal,
): Promise<T> => {
  try {
    return await within(budget.leftMs(), task, () => new BudgetSpent(), stopping);
  } catch (error) {
    if (error instanceof BudgetSpent) budget.end();
    throw error;
  }
};

/** `appending`: its own intent. `begunOn`: where that or a joined one is durable. Undefined: nothing begun. */
export type Reached = 'appending' | { begunOn: string } | undefined;

export type Reach = (reached: Reached) => void;

export type Begins = { sender: Sender; budget: Budget; reach: Reach };
