/**
 * The shares of several readers of one log, each of which takes some of its streams, every one as a whole:
 * all of them read every row, and the work of an event is one reader's.
 */
import { availableParallelism } from 'node:os';
import { SEALS_STREAM } from '../payment/seals-stream.ts';
import { numberOf } from './log-progress.ts';
import type { LogReader, Position } from './port.ts';

/** One of several readers: `index` counts from 0. The first of them takes the stream of the seals. */
export type Share = { index: number; of: number };

/** The share of a reader that is alone. */
export const WHOLE: Share = { index: 0, of: 1 };

const SHARES_MAX = 4;
/** A thread takes 0.1 s to start: fewer events than this are read faster by one. */
const EVENTS_MIN = 20_000;
/** Ids end in what is random in them. */
const CHARACTERS = 4;

/** Into how many shares the log up to `end` is divided where each has a thread: 1 where none can have one. */
export const sharesOf = ({ stored }: Pick<LogReader, 'stored'>, end: Position | null): number => {
  if (stored.scan === undefined) return 1;
  const worthIt = Math.floor(numberOf(end) / EVENTS_MIN) + 1;
  return Math.min(worthIt, availableParallelism(), SHARES_MAX);
};

/** Whether a stream is of a share, by its name alone; every stream is of exactly one. */
export const takes = ({ index, of }: Share): ((stream: string) => boolean) => {
  if (of === 1) return () => true;
  return (stream) => {
    if (stream === SEALS_STREAM) return index === 0;
    let sum = 0;
    for (let at = Math.max(stream.length - CHARACTERS, 0); at < stream.length; at += 1)
      sum = sum * 31 + stream.charCodeAt(at);
    return sum % of === index;
  };
};

/** Whether what is looked for once over the whole log is this share's. */
export const isFirstShare = ({ index }: Share = WHOLE): boolean => index === 0;
