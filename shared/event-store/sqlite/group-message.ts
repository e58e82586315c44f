/**
 * A group of appends, and what came of them, as they go between the threads: one flat array each. An
 * array of objects costs both threads twice as much.
 */
import { GENESIS_HASH } from '../chain.ts';
import type { EncodedEvent } from '../codec.ts';
import type { Expected } from '../port.ts';
import type {
  AppendJob,
  AppendOutcome,
  GroupMessage,
  OtherOutcome,
  OutcomesMessage,
} from './messages.ts';

/** One append of a group, as the event loop has it. */
export type Append = { stream: string; expected: Expected; encoded: EncodedEvent[] };

const NOT_STORED = 0;

/** The message of a group. */
export function packGroup(group: readonly Append[]): GroupMessage {
  const flat: GroupMessage = [];
  for (const { stream, expected, encoded } of group) {
    const { revision, hash } =
      expected === 'none' ? { revision: -1, hash: GENESIS_HASH } : expected;
    flat.push(stream, revision, hash, encoded.length);
    for (const { recorded, text } of encoded) flat.push(recorded.id, recorded.hash, text);
  }
  return flat;
}

/** The group that `packGroup` made the message of. */
export function unpackGroup(flat: GroupMessage): AppendJob[] {
  const jobs: AppendJob[] = [];
  let at = 0;
  const next = (): string | number => flat[at++] as string | number;
  while (at < flat.length) {
    const job: AppendJob = {
      stream: next() as string,
      revision: next() as number,
      hash: next() as string,
      events: [],
    };
    for (let left = next() as number; left > 0; left -= 1) {
      job.events.push({ id: next() as string, hash: next() as string, text: next() as string });
    }
    jobs.push(job);
  }
  return jobs;
}

/** The message of the outcomes of a group. */
export function packOutcomes(outcomes: readonly AppendOutcome[]): OutcomesMessage {
  const flat: OutcomesMessage = [];
  for (const outcome of outcomes) {
    if ('first' in outcome) flat.push(outcome.first, ...outcome.logHashes);
    else flat.push(NOT_STORED, outcome);
  }
  return flat;
}

/** The outcomes that `packOutcomes` made the message of, for the group that they belong to. */
export function unpackOutcomes(group: readonly Append[], flat: OutcomesMessage): AppendOutcome[] {
  let at = 0;
  return group.map(({ encoded }) => {
    const first = flat[at] as number;
    at += 1;
    if (first === NOT_STORED) return flat[at++] as OtherOutcome;
    const logHashes = flat.slice(at, at + encoded.length) as string[];
    at += encoded.length;
    return { first, logHashes };
  });
}
