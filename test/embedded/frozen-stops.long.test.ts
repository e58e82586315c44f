/**
 * V2: a stop while an engine stands still. What waits for it is given up in time: who waits for a
 * response gets one, and each process ends by itself, with exit code 0 within 10 s.
 */
import { describe, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { isReady } from '../support/service-client.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  standInEventStore,
  standInMongo,
  startThreeProcesses,
  type ThreeProcesses,
} from '../support/service-processes.ts';
import { STOP_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import { request } from '../support/webhook-merchant.ts';

const KINDS = ['command-api', 'query-api', 'projector'] as const;
const CASES = [
  { what: 'EventStoreDB', frozen: ['EventStoreDB'], created: 503, read: 503 },
  { what: 'MongoDB', frozen: ['MongoDB'], created: 200, read: 200 },
  { what: 'each', frozen: ['EventStoreDB', 'MongoDB'], created: 503, read: 503 },
];

const clientOf =
  ({ url, env }: ThreeProcesses) =>
  async (path: string, claims: object, body?: object) => {
    const token = await signToken({ sub: 'jane', ...claims }, env.JWT_SECRET);
    return request({ url, token }, body === undefined ? 'GET' : 'POST', path, body);
  };

describe('V2: SIGTERM', () => {
  test.each(CASES)(
    '$what stands still: exit code 0 within 10 s',
    async ({ frozen, created, read }) => {
      await using eventStore = await standInEventStore();
      await using readStore = await standInMongo();
      await using service = await startThreeProcesses({
        EVENTSTOREDB_URL: eventStore.url,
        MONGODB_URL: readStore.url,
      });
      const send = clientOf(service);
      const create = () => send('/api/v1/payments', { merchant_id: 'm_demo' }, payment);
      const { paymentId } = (await create()).json;

      if (frozen.includes('EventStoreDB')) eventStore.process.kill('SIGSTOP');
      if (frozen.includes('MongoDB')) readStore.process.kill('SIGSTOP');
      const [projector] = service.processes.projector;
      await until('health has noticed', async () => !(await isReady(projector?.url ?? '')));
      const creating = create();
      const auditor = { merchant_id: '*', scope: 'audit:read' };
      const reading = send(`/audit/v1/payments/${paymentId}/events`, auditor);
      // These come after them.
      await fetch(`${service.url}/health/live`);
      await fetch(`${service.url}/api/v1/payments/${paymentId}`);

      const signalledAtMs = performance.now();
      const exits = KINDS.map(async (kind) => {
        const [one] = service.processes[kind];
        one?.kill('SIGTERM');
        const exit = await one?.exited;
        return { kind, ...exit, inTime: performance.now() - signalledAtMs < STOP_MS_MAX };
      });
      expect((await creating).status).toBe(created);
      expect((await reading).status).toBe(read);
      expect(await Promise.all(exits)).toEqual(
        KINDS.map((kind) => ({ kind, code: 0, signal: null, inTime: true })),
      );
    },
  );
});
