/** ADR-0242: threads that fill one file of read models write in turns. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from '@jest/globals';
import {
  createWriteTurn,
  inWriteTurn,
  type WriteTurn,
} from '../../../shared/read-models/sqlite/write-turn.ts';

const MODULE = new URL('../../../shared/read-models/sqlite/write-turn.ts', import.meta.url).href;
const STEPS = 300;

/** Adds one to a number `STEPS` times, in two movements that another thread must not come between. */
const ADDING = `
  const { workerData: { turn, sum, started } } = require('node:worker_threads');
  import(${JSON.stringify(MODULE)}).then(({ inWriteTurn }) => {
    Atomics.add(started, 0, 1);
    while (Atomics.load(started, 0) < 2);
    for (let step = 0; step < ${STEPS}; step += 1) {
      inWriteTurn(turn, () => {
        const before = Atomics.load(sum, 0);
        const until = performance.now() + 0.05;
        while (performance.now() < until);
        Atomics.store(sum, 0, before + 1);
      });
    }
  });`;

const shared = () => new Int32Array(new SharedArrayBuffer(4));

test('no thread writes within the turn of another one', async () => {
  const workerData = { turn: createWriteTurn(), sum: shared(), started: shared() };
  const threads = [1, 2].map(() => new Worker(ADDING, { eval: true, execArgv: [], workerData }));
  await Promise.all(threads.map((one) => once(one, 'exit')));
  expect(workerData.sum[0]).toBe(2 * STEPS);
});

const isFree = (turn: WriteTurn) => turn[0] === 0;

test('a turn that was never given back holds nobody up for good, and is not taken away', () => {
  const turn = createWriteTurn();
  const written: string[] = [];
  inWriteTurn(turn, () => {
    inWriteTurn(turn, () => written.push('beside it'));
    expect(isFree(turn)).toBe(false);
  });
  expect(written).toEqual(['beside it']);
  expect(isFree(turn)).toBe(true);
});

test('a step that fails gives the turn back', () => {
  const turn = createWriteTurn();
  const failing = () =>
    inWriteTurn(turn, () => {
      throw new Error('the disk is full');
    });
  expect(failing).toThrow('the disk is full');
  expect(isFree(turn)).toBe(true);
});
