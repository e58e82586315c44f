/**
 * Traces as a collector gets them, of services in processes of their own: one trace of one payment,
 * also through three processes, and a collector that is away costs no request anything.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { SPAN_ATTRIBUTES } from '../../shared/runtime/tracing.ts';
import { type CollectedSpan, type Collector, startCollector } from '../support/otlp-collector.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  noThreeProcesses,
  ROOT,
  startService,
  startThreeProcesses,
} from '../support/service-processes.ts';
import { STOP_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

/** The spans of a picture in docs/traces.md by the heading above it, each as `process: name`. */
const onPage = (heading: string): string[] => {
  const page = readFileSync(join(ROOT, 'docs/traces.md'), 'utf8');
  const [, picture = ''] = page.split(`${heading}\n\n\`\`\`mermaid\ngantt\n`);
  const [, ...processes] = (picture.split('```')[0] ?? '').split('section ');
  return processes
    .flatMap((text) => {
      const [process, ...spans] = text.trim().split('\n');
      return spans.map((span) => `${process}: ${span.split(' :')[0]?.trim()}`);
    })
    .toSorted();
};

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const NUMBER = payment.paymentMethod.card.number;

const settings = ({ url }: Pick<Collector, 'url'>) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_TRACES_SAMPLER_ARG: '1',
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
});

const ofTrace = ({ spans }: Collector): CollectedSpan[] =>
  spans.filter(({ traceId }) => traceId === TRACE);
const namesOf = (collector: Collector): string[] =>
  ofTrace(collector)
    .map(({ process, name }) => `${process}: ${name}`)
    .toSorted();

const expectClean = (collector: Collector): void => {
  const names = new Set(collector.spans.flatMap(({ attributes }) => Object.keys(attributes)));
  expect([...names].filter((name) => !(name in SPAN_ATTRIBUTES))).toEqual([]);
  expect(collector.bytes().includes(NUMBER)).toBe(false);
  expect(collector.bytes().includes(payment.paymentMethod.card.holderName)).toBe(false);
};

/** Registers a webhook, creates a payment in a trace and waits until its message has come. */
const createTraced = async (base: string, bearer: string) => {
  const receiver = await startReceiver();
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const json = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` };
    const sent = { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) };
    const response = await fetch(`${base}/api/v1/${path}`, sent);
    expect(response.ok).toBe(true);
    return (await response.json()) as { paymentId: string };
  };
  await post('webhook-endpoints', { url: receiver.url });
  // The first requests of a process are slower than those after them.
  for (let at = 0; at < 20; at += 1) await post('payments', payment);
  const { paymentId } = await post('payments', payment, { traceparent: SENT });
  const message = () =>
    receiver.received.find(({ json }) => json.data.payment?.paymentId === paymentId);
  await until('the message is there', () => message() !== undefined);
  await receiver[Symbol.asyncDispose]();
  return { paymentId, traceparent: message()?.headers.traceparent };
};

test('the embedded service sends one trace of one payment, and what has ended when it stops', async () => {
  await using collector = await startCollector();
  await using service = await startService({ env: settings(collector) });
  const { traceparent } = await createTraced(service.url, await service.token());
  service.kill();
  expect(await service.exited).toEqual({ code: 0, signal: null });
  expect(namesOf(collector)).toEqual(onPage('A create on the embedded service:'));
  const root = ofTrace(collector).find(({ name }) => name.startsWith('POST'));
  expect(traceparent).toBe(`00-${TRACE}-${root?.id}-01`);
  expect(service.stdout()).toContain(`"trace_id":"${TRACE}"`);
  expectClean(collector);
});

describe('a collector that does not take spans', () => {
  test.each(['is not there', 'hangs'])(
    'and %s: requests are served, one line says so, the stop takes a second at most',
    async (how) => {
      await using collector = await startCollector();
      collector.mode = 'hangs';
      const url = how === 'hangs' ? collector.url : 'http://127.0.0.1:1';
      await using service = await startService({ env: settings({ url }) });
      for (let at = 0; at < 50; at += 1) await service.post('/api/v1/payments', payment);
      const dropped = () => service.stdout().split('spans are dropped').length - 1;
      if (how === 'is not there') {
        await until('it is in the log', () => dropped() > 0);
        const text = await (await fetch(`${service.url}/metrics`)).text();
        expect(text).toMatch(/payments_trace_spans_total\{outcome="dropped"\} [1-9]/);
      }
      const before = performance.now();
      service.kill();
      expect(await service.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - before).toBeLessThan(STOP_MS_MAX / 2);
      expect(dropped()).toBeLessThanOrEqual(1);
    },
  );
});

const reason = noThreeProcesses();
const several = reason === undefined ? test : test.skip;

several(
  `one trace goes through three processes${reason === undefined ? '' : ` (${reason})`}`,
  async () => {
    await using collector = await startCollector();
    await using deployment = await startThreeProcesses(settings(collector));
    const { env, url } = deployment;
    const claims = { merchant_id: 'm_traces', sub: 'tester' };
    const bearer = await signToken(claims, env.JWT_SECRET);
    const { paymentId } = await createTraced(url, bearer);
    const headers = { authorization: `Bearer ${bearer}`, traceparent: SENT };
    await fetch(`${url}/api/v1/payments/${paymentId}`, { headers });
    await until('all processes have sent their spans', () =>
      ['command-api', 'projector', 'query-api'].every((process) =>
        ofTrace(collector).some((span) => span.process === process),
      ),
    );
    const hasBroker = env.KAFKA_BROKERS !== undefined;
    await until(
      'the last spans are there',
      () =>
        namesOf(collector).includes('projector: deliver payment.authorized') &&
        (!hasBroker || namesOf(collector).some((name) => name.includes('projector: send'))),
    );
    const create = ofTrace(collector).filter(({ process }) => process !== 'query-api');
    const byId = new Map(create.map((span) => [span.id, span]));
    const root = create.find(({ name }) => name === 'POST /api/v1/payments');
    for (const span of create)
      if (span !== root) expect(byId.get(span.parentId ?? '')?.name).toBeDefined();
    const shown = onPage('The same through three processes and Kafka:');
    const expected = shown.filter((name) => hasBroker || !name.includes(': send'));
    const names = namesOf(collector).map((name) =>
      name.replace(env.KAFKA_TOPIC_PREFIX ?? 'payments', 'payments'),
    );
    expect(names).toEqual(expect.arrayContaining(expected));
    expect(names).toContain('query-api: GET /api/v1/payments/:paymentId');
    expectClean(collector);
  },
);
