/**
 * Traces as a collector gets them, of services in processes of their own: one trace of one payment,
 * also through three processes, and a collector that is away costs no request anything. With
 * `TRACE_PICTURES=write` (`npm run docs:traces`) the pictures of docs/traces.md are drawn from them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { SPAN_ATTRIBUTES } from '../../shared/runtime/tracing.ts';
import { signToken } from '../support/in-process.ts';
import { type CollectedSpan, type Collector, startCollector } from '../support/otlp-collector.ts';
import { ROOT, startService } from '../support/service.ts';
import { noThreeProcesses, startThreeProcesses } from '../support/three-processes.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

/** In pixels. */
const WIDTH = 720;
const STYLE = `<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; font-size: 15px; }
  .grid { stroke: #8c959f; stroke-width: 1; stroke-opacity: 0.35; }
  .a { fill: #0969da; stroke: #0969da; } .b { fill: #bc4c00; stroke: #bc4c00; }
  .c { fill: #1a7f37; stroke: #1a7f37; } .bare { fill: #8c959f; stroke: #8c959f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .a { fill: #58a6ff; stroke: #58a6ff; } .b { fill: #f0883e; stroke: #f0883e; }
    .c { fill: #56d364; stroke: #56d364; }
  }
</style>`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const px = (value: number): string => String(Math.round(value * 10) / 10);

const label = (x: number, y: number, text: string, extra = ''): string =>
  `<text x="${px(x)}" y="${px(y)}"${extra}>${escaped(text)}</text>`;

type DrawnSpan = {
  id: string;
  parentId: string | undefined;
  name: string;
  process: string;
  startMs: number;
  endMs: number;
};

const KINDS = ['a', 'b', 'c', 'bare'] as const;
const TOP = 70;
const STEP = 24;
const BAR_HEIGHT = 14;
const LEFT = 290;
const RIGHT = 84;
const INDENT = 14;

const inOrder = (spans: readonly DrawnSpan[]): { span: DrawnSpan; depth: number }[] => {
  const sorted = spans.toSorted((a, b) => a.startMs - b.startMs);
  const ids = new Set(sorted.map(({ id }) => id));
  const below = (parent: DrawnSpan | undefined, depth: number): ReturnType<typeof inOrder> =>
    sorted
      .filter(({ parentId }) =>
        parent === undefined ? !ids.has(parentId ?? '') : parentId === parent.id,
      )
      .flatMap((span) => [{ span, depth }, ...below(span, depth + 1)]);
  return below(undefined, 0);
};

const ms = (value: number): string => `${Number(value.toPrecision(2)).toLocaleString('en-US')} ms`;

const tracePicture = (title: string, spans: readonly DrawnSpan[]): string => {
  if (spans.length === 0) throw new RangeError('a trace without spans has no picture');
  const rows = inOrder(spans);
  const beganMs = Math.min(...spans.map(({ startMs }) => startMs));
  const lengthMs = Math.max(...spans.map(({ endMs }) => endMs)) - beganMs;
  const x = (atMs: number): number =>
    LEFT + ((atMs - beganMs) / Math.max(lengthMs, 0.001)) * (WIDTH - LEFT - RIGHT);
  const processes = [...new Set(rows.map(({ span }) => span.process))];
  const kindOf = (process: string): string => KINDS[processes.indexOf(process)] ?? 'bare';
  const height = TOP + rows.length * STEP + 28;
  const legend = processes.flatMap((process, at) => [
    `<rect class="${kindOf(process)}" x="${16 + at * 150}" y="40" width="12" height="12"/>`,
    label(34 + at * 150, 51, process),
  ]);
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => {
    const at = x(beganMs + share * lengthMs);
    const bottom = TOP + rows.length * STEP;
    return [
      `<line class="grid" x1="${px(at)}" y1="${TOP - 6}" x2="${px(at)}" y2="${bottom}"/>`,
      label(at, bottom + 18, ms(share * lengthMs), ' text-anchor="middle"'),
    ];
  });
  const bars = rows.flatMap(({ span, depth }, row) => {
    const y = TOP + row * STEP;
    const width = Math.max(x(span.endMs) - x(span.startMs), 2);
    return [
      label(16 + depth * INDENT, y + 11, span.name),
      `<rect class="${kindOf(span.process)}" x="${px(x(span.startMs))}" y="${y}" width="${px(width)}" height="${BAR_HEIGHT}"/>`,
      label(x(span.startMs) + width + 5, y + 11, ms(span.endMs - span.startMs)),
    ];
  });
  const described = rows.map(
    ({ span }) =>
      `${span.name} (${span.process}) from ${ms(span.startMs - beganMs)} for ${ms(span.endMs - span.startMs)}`,
  );
  const parts = [label(16, 26, title, ' class="title"'), ...legend, ...grid, ...bars];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title desc">
<title id="title">${escaped(title)}</title>
<desc id="desc">${escaped(`${described.join('; ')}.`)}</desc>
${STYLE}
${parts.join('\n')}
</svg>
`;
};

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const NUMBER = payment.paymentMethod.card.number;
const TEST_MS = 120_000;

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

/** Draws the picture; it is written where that is asked for, and is there in any case. */
const draw = (file: string, title: string, spans: readonly DrawnSpan[]): void => {
  const path = join(ROOT, 'docs/pictures', file);
  const picture = tracePicture(title, spans);
  if (process.env.TRACE_PICTURES === 'write') writeFileSync(path, picture);
  for (const { name } of spans) {
    expect(picture).toContain(`>${name}<`);
    expect(readFileSync(path, 'utf8')).toContain(`>${name}<`);
  }
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

test(
  'the embedded service sends one trace of one payment, and what has ended when it stops',
  async () => {
    await using collector = await startCollector();
    await using service = await startService({ env: settings(collector) });
    const { traceparent } = await createTraced(service.url, await service.token());
    service.kill();
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(namesOf(collector)).toEqual([
      'embedded: POST /api/v1/payments',
      'embedded: append payment',
      'embedded: append payment',
      'embedded: deliver payment.authorized',
      'embedded: project PaymentAuthorized',
      'embedded: project PaymentCreated',
      'embedded: provider authorize',
    ]);
    const root = ofTrace(collector).find(({ name }) => name.startsWith('POST'));
    expect(traceparent).toBe(`00-${TRACE}-${root?.id}-01`);
    expect(service.stdout()).toContain(`"trace_id":"${TRACE}"`);
    expectClean(collector);
    draw('trace-embedded.svg', 'A create on the embedded service', ofTrace(collector));
  },
  TEST_MS,
);

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
        await until('it is in the log', () => dropped() > 0, 30_000);
        const text = await (await fetch(`${service.url}/metrics`)).text();
        expect(text).toMatch(/payments_trace_spans_total\{outcome="dropped"\} [1-9]/);
      }
      const before = performance.now();
      service.kill();
      expect(await service.exited).toEqual({ code: 0, signal: null });
      expect(performance.now() - before).toBeLessThan(5_000);
      expect(dropped()).toBeLessThanOrEqual(1);
    },
    TEST_MS,
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
    expect(namesOf(collector)).toEqual(
      expect.arrayContaining([
        'command-api: POST /api/v1/payments',
        'command-api: append payment',
        'command-api: provider authorize',
        'projector: project PaymentCreated',
        'projector: project PaymentAuthorized',
        'projector: deliver payment.authorized',
        'query-api: GET /api/v1/payments/:paymentId',
        'query-api: read payment',
      ]),
    );
    expectClean(collector);
    const withUsualTopics = create.map((span) => ({
      ...span,
      name: span.name.replace(env.KAFKA_TOPIC_PREFIX ?? '', 'payments'),
    }));
    if (hasBroker)
      draw('trace-processes.svg', 'A create through three processes and Kafka', withUsualTopics);
  },
  TEST_MS,
);
