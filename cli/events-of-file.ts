/** One payment's events from an export, shown as the service would show them, without the service. */
import { readFileSync } from 'node:fs';
import { readExportLine } from '../audit/export-lines.ts';
import { foldProven, streamBreak, timelineOf } from '../audit/history.ts';
import { StateParameters } from '../audit/parameters.ts';
import { type NoState, type State, stateOf } from '../audit/state.ts';
import { decode } from '../shared/event-store/codec.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { verifyPart } from '../shared/event-store/verify-chain.ts';
import { streamOf } from '../shared/payment/payment-events.ts';
import { CommandFailed } from './command-failed.ts';
import type { Source } from './events-source.ts';

const linesIn = (file: string): string[] => {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch (error) {
    throw new CommandFailed(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
};

/** Throws CommandFailed where an event cannot be read, or cannot follow the one before it. */
const orUnreadable = (fold: () => State | NoState): State | NoState => {
  try {
    return fold();
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    throw new CommandFailed(`the payment has no state to show: ${error.message}`);
  }
};

/** Throws CommandFailed when the file cannot be read, or holds no event of the payment. */
export const fileSource = (paymentId: string, file: string): Source => {
  const stream = streamOf(paymentId);
  const forms = linesIn(file).flatMap((line) => {
    const read = readExportLine(line);
    return read?.stream === stream ? [read] : [];
  });
  const events = forms.map((form) => decode(form));
  const broken = streamBreak(forms, events, verifyPart);
  if (events.length === 0) {
    throw new CommandFailed(`${file} holds no event of ${paymentId}; next: payments find`);
  }
  return {
    timeline: async () => ({
      events: timelineOf(events, broken),
      ...(broken === undefined ? {} : { broken }),
    }),
    state: async (at) => {
      const parameters = StateParameters.safeParse(at);
      if (!parameters.success) throw new CommandFailed('--at must be a revision or a time', 2);
      const state = orUnreadable(() =>
        foldProven({ events, broken }, (proven) => stateOf(proven, parameters.data, broken)),
      );
      if (!('none' in state)) return state;
      throw new CommandFailed(state.detail, state.none === 'broken' ? 3 : 1);
    },
  };
};
