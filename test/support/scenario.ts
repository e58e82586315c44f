/** Scenarios as a table: given these events, when this is asked, then that is the whole answer. */
import { expect, test } from '@jest/globals';
import type { Command } from '../../shared/payment/commands.ts';
import { type Decision, decide } from '../../shared/payment/decide.ts';
import { type PaymentEvent, paymentSchemas } from '../../shared/payment/events.ts';
import { evolve } from '../../shared/payment/fold.ts';
import type { PaymentState } from '../../shared/payment/state.ts';
import { placed } from './payment-events.ts';
import type { Plain } from './plain.ts';

/** The events decided (none for a repeat), a refusal, or the message of a caller's bug. */
export type CommandResponse =
  | Plain<PaymentEvent>[]
  | Exclude<Decision, { kind: 'events' }>
  | { throws: string };

export type Scenario = {
  title: string;
  given: PaymentEvent[];
  when: Command;
  response: CommandResponse;
};

/** The state after a stream of these events; frozen, so that nothing can change it in passing. */
export const stateAfter = (events: PaymentEvent[]): PaymentState | undefined =>
  placed(events).reduce<PaymentState | undefined>(
    (state, event) => Object.freeze(evolve(state, event)),
    undefined,
  );

export const responseTo = (
  given: PaymentEvent[],
  when: Command,
): Exclude<CommandResponse, unknown[]> | PaymentEvent[] => {
  try {
    const decision = decide(stateAfter(given), when);
    return decision.kind === 'events' ? decision.events : decision;
  } catch (error) {
    return { throws: (error as Error).message };
  }
};

/**
 * One test per row. Beside the answer itself each row shows that the events can be stored, and
 * that the command is safe to repeat: once its events are there, it yields no more of them.
 */
export const scenarios = (rows: readonly Scenario[]): void => {
  test.each(rows)('$title', ({ given, when, response }) => {
    const decided = responseTo(given, when);
    expect(decided).toEqual(response);
    if (!Array.isArray(decided)) return;
    for (const { type, data } of decided) {
      expect(paymentSchemas[type].parse(data)).toEqual(data);
    }
    expect(responseTo([...given, ...decided], when)).toEqual([]);
  });
};
