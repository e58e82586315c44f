/** What a round of load came to, which rounds were disturbed, and the middle of those that were not. */
import type { LoadResult } from './load.ts';
import type { Usage } from './probe.ts';

/** One kind of load in one round: what it sent, and what that cost the server. */
export type Round = Omit<LoadResult, 'ids' | 'firstBad'> & Usage;

/** A round of our load beside the bare one that was driven just before it. */
export type Pair = { bare: Round; ours: Round };

/** A server below this share of its CPU had something to wait for; so had a load. */
const BUSY_SHARE_MIN = 0.9;
/** How far the bare server's CPU for a request may lie from its middle. */
const BARE_MOVE_MAX = 0.15;

/** CPU of the server for one request, in microseconds. */
export const cpuUsOf = ({ cpuUs, requests }: Round): number => cpuUs / requests;

/** The middle value; of two, the upper one. NaN for none. */
export const middleOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const percent = (share: number): string => `${Math.round(share * 100)} %`;

/** A load that fills its own CPU leaves the server idle, and nobody disturbed either of them. */
const idleness = (name: string, { cpuUs, ms, cpuShare }: Round): string[] => {
  const share = cpuUs / 1000 / ms;
  return share < BUSY_SHARE_MIN && cpuShare < BUSY_SHARE_MIN
    ? [`${name} had ${percent(share)} of its CPU`]
    : [];
};

/**
 * Why a pair of rounds does not count, or undefined: a server far below its CPU without a disk to wait
 * for, or a bare server that cost much more or less than in the middle of all rounds.
 */
const disturbanceOf = (
  { bare, ours }: Pair,
  bareUsOfAll: readonly number[],
  waitsForDisk: boolean,
): string | undefined => {
  const move = cpuUsOf(bare) / middleOf(bareUsOfAll) - 1;
  const reasons = [
    ...idleness('bare', bare),
    ...(waitsForDisk ? [] : idleness('the server', ours)),
    ...(Math.abs(move) > BARE_MOVE_MAX ? [`bare cost ${percent(1 + move)} of its middle`] : []),
  ];
  return reasons.length === 0 ? undefined : reasons.join(', ');
};

/** The pairs of one load, each with why it was disturbed, if it was. */
export type Judged = { pair: Pair; disturbance: string | undefined };

/** Judges each pair by all of them. */
export const judge = (pairs: readonly Pair[], waitsForDisk: boolean): Judged[] => {
  const bareUs = pairs.map(({ bare }) => cpuUsOf(bare));
  return pairs.map((pair) => ({ pair, disturbance: disturbanceOf(pair, bareUs, waitsForDisk) }));
};

/** The middle of several rounds, each value by itself; what was bad is added up. */
export const middleRound = (rounds: readonly Round[]): Round => {
  const middle = (of: (round: Round) => number): number => middleOf(rounds.map(of));
  const perRequest = middle(cpuUsOf);
  const requests = middle((round) => round.requests);
  return {
    requests,
    cpuUs: perRequest * requests,
    ms: middle((round) => round.ms),
    perSecond: middle((round) => round.perSecond),
    p50Ms: middle((round) => round.p50Ms),
    p99Ms: middle((round) => round.p99Ms),
    cpuShare: middle((round) => round.cpuShare),
    rssBytes: Math.max(...rounds.map((round) => round.rssBytes)),
    gcMs: middle((round) => round.gcMs),
    gcMaxMs: middle((round) => round.gcMaxMs),
    delayP99Ms: middle((round) => round.delayP99Ms),
    delayMaxMs: middle((round) => round.delayMaxMs),
    bad: rounds.reduce((sum, round) => sum + round.bad, 0),
  };
};

/** What one load came to: the middles of its rounds, and of each round the share of bare. */
export type Outcome = {
  bare: Round;
  ours: Round;
  /** CPU of bare divided by ours, in the middle of the pairs; 1 is as cheap as bare. */
  ofBare: number;
  /** For each pair the share of bare, and why it was disturbed. */
  rounds: string[];
  /** False where every pair was disturbed, and all of them had to count. */
  isClean: boolean;
};

const shareOf = ({ pair: { bare, ours }, disturbance }: Judged): string => {
  const share = (cpuUsOf(bare) / cpuUsOf(ours)).toFixed(2);
  return disturbance === undefined ? share : `${share} (disturbed: ${disturbance})`;
};

/** What the pairs of one load came to. */
export const outcomeOf = (judged: readonly Judged[]): Outcome => {
  const clean = judged.filter(({ disturbance }) => disturbance === undefined);
  const counted = (clean.length === 0 ? judged : clean).map(({ pair }) => pair);
  return {
    bare: middleRound(counted.map(({ bare }) => bare)),
    ours: middleRound(counted.map(({ ours }) => ours)),
    ofBare: middleOf(counted.map(({ bare, ours }) => cpuUsOf(bare) / cpuUsOf(ours))),
    rounds: judged.map(shareOf),
    isClean: clean.length > 0,
  };
};

/** How many responses of all loads were not 2xx. */
export const outcomesBad = (outcomes: Readonly<Record<string, Outcome>>): number =>
  Object.values(outcomes).reduce((sum, { bare, ours }) => sum + bare.bad + ours.bad, 0);
