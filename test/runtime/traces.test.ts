/**
 * One request is one trace, through HTTP, log, provider, read models, topic and webhook; what spans say
 * is a closed list; and a trace that a client sends decides nothing here but its id (ADR-0233).
 */
import { afterAll, describe, expect, test } from '@jest/globals';
import { InMemorySpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace';
import type { Projection } from '../../projector/projection.ts';
import { tracedProjection } from '../../projector/traces.ts';
import type { LogEvent } from '../../shared/event-store/port.ts';
import type { Log } from '../../shared/runtime/log.ts';
import { openTraces } from '../../shared/runtime/traces.ts';
import {
  cleaned,
  parseTraceparent,
  receivedTraceparent,
  SPAN_ATTRIBUTES,
} from '../../shared/runtime/tracing.ts';
import { tracedFeed } from '../../topics/traces.ts';
import { memoryFeed } from '../support/memory-feed.ts';
import { startCollector } from '../support/otlp-collector.ts';
import { created, newEvent } from '../support/payment-events.ts';
import { APPROVED, openInProcess, token } from '../support/service-in-process.ts';
import { silent } from '../support/silent-log.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const SENT = `00-${TRACE}-${SPAN}-01`;

const lines: Record<string, unknown>[] = [];
const note = (fields: object): void => void lines.push(fields as Record<string, unknown>);
const log = { ...silent, debug: note, info: note, warn: note, error: note } as unknown as Log;

const exporter = new InMemorySpanExporter();
/** Gets the spans of the deliverer, whose thread sends its own. */
const collector = await startCollector();
const all = { endpoint: collector.url, serviceName: 'payments', ratio: 1 };
let traces = await openTraces({ ...all, mode: 'embedded', log, exporter });
const receiver = await startReceiver();
const settings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_TRACES_SAMPLER_ARG: '1',
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
};
const service = await openInProcess(settings, log);
await service.ask('POST', '/api/v1/webhook-endpoints', { url: receiver.url });
const client = { traceparent: SENT, tracestate: `card=${APPROVED}`, baggage: 'name=Johanna' };
const { paymentId } = (await service.create({}, { headers: client })).json;
await until('the message is there', () => receiver.received.length > 0);
await until('its span has come', () => collector.spans.length > 0);
await traces.flush();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
  await traces.stop();
  await collector[Symbol.asyncDispose]();
});

const ofTrace = (traceId = TRACE): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId);
const named = (name: string): ReadableSpan[] => ofTrace().filter((span) => span.name === name);
const nameOf = (id: string | undefined): string | undefined =>
  ofTrace().find((span) => span.spanContext().spanId === id)?.name;

describe('one payment that a client creates in a trace of its own', () => {
  test('has a span for each step, each below the request', () => {
    const here = ofTrace().map(
      ({ name, parentSpanContext }) => `${nameOf(parentSpanContext?.spanId) ?? 'client'} > ${name}`,
    );
    const delivered = collector.spans.map(({ name, parentId }) => `${nameOf(parentId)} > ${name}`);
    const steps = [...here, ...delivered];
    const request = 'POST /api/v1/payments';
    expect(steps.toSorted()).toEqual([
      `${request} > append payment`,
      `${request} > append payment`,
      `${request} > deliver payment.authorized`,
      `${request} > project PaymentAuthorized`,
      `${request} > project PaymentCreated`,
      `${request} > provider authorize`,
      `client > ${request}`,
    ]);
    expect(named(request)[0]?.parentSpanContext?.spanId).toBe(SPAN);
  });

  test('says nothing beyond the closed list, and no card number anywhere', () => {
    const attributes = [...ofTrace(), ...collector.spans].map((span) =>
      Object.keys(span.attributes),
    );
    const names = new Set(attributes.flat());
    expect([...names].filter((name) => !(name in SPAN_ATTRIBUTES))).toEqual([]);
    const all = ofTrace().map(({ name, attributes, events, links, status, resource }) => ({
      ...{ name, attributes, events, links, status, resource: resource.attributes },
    }));
    expect(JSON.stringify(all)).not.toMatch(/"4242"|42424242|Johanna|card=/);
    expect(collector.bytes().toString('latin1')).not.toMatch(/4242424242|Johanna|card=/);
    expect(named('POST /api/v1/payments')[0]?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/api/v1/payments',
      'http.response.status_code': 200,
      'payments.payment_id': paymentId,
    });
    expect(named('provider authorize')[0]?.attributes).toEqual({ 'payments.outcome': 'APPROVED' });
  });

  test('has its trace in its line of the log, in its topic messages and in its webhook', async () => {
    const [request] = named('POST /api/v1/payments');
    const stored = `00-${TRACE}-${request?.spanContext().spanId}-01`;
    const line = lines.find(({ route, trace_id }) => route !== undefined && trace_id === TRACE);
    expect(line).toMatchObject({ route: '/api/v1/payments', status: 200, paymentId });
    expect(receiver.received[0]?.headers.traceparent).toBe(stored);
    expect(receiver.received[0]?.headers).not.toHaveProperty('tracestate');
    const admin = { token: await token('*', 'ops:admin') };
    for (const topic of ['events', 'state']) {
      const path = `/ops/v1/topics/${topic}/messages`;
      const { text } = await service.ask('GET', path, undefined, admin);
      const messages = text.split('\n').filter((message) => message.includes(paymentId));
      expect(messages.map((message) => JSON.parse(message).traceparent)).toEqual([stored, stored]);
    }
  });

  test('is sent to a topic below its span, and linked where others go along', async () => {
    const feed = tracedFeed(memoryFeed(), 'payments');
    const other = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const messageOf = (traceparent: string) => ({
      ...{ topic: 'events' as const, partition: 0, key: 'k', value: '{}', timestampMs: 0 },
      headers: { traceparent },
    });
    await feed.publish('events', [messageOf(SENT), messageOf(other), messageOf(SENT)]);
    await traces.flush();
    const [span] = named('send payments.events.v1');
    expect(span?.parentSpanContext?.spanId).toBe(SPAN);
    expect(span?.links.map(({ context }) => context.traceId)).toEqual([
      '0af7651916cd43dd8448eb211c80319c',
    ]);
    expect(span?.attributes['messaging.batch.message_count']).toBe(3);
  });

  test('has one span at the read models, however often its batch is tried', async () => {
    const tries: number[] = [];
    const projection = tracedProjection({
      events: async (events: LogEvent[]) => {
        tries.push(events.length);
        if (tries.length < 3) throw new Error('the read models are out of reach');
      },
    } as unknown as Projection);
    const event = newEvent(created(), new Date().toISOString());
    const context = { ...event.context, traceparent: SENT };
    const stored = [{ ...event, context }] as unknown as LogEvent[];
    const before = named('project PaymentCreated').length;
    for (const _ of [1, 2]) await expect(projection.events(stored)).rejects.toThrow('out of reach');
    await projection.events(stored);
    await traces.flush();
    const spans = named('project PaymentCreated').slice(before);
    expect(spans.map(({ attributes }) => attributes)).toEqual([{ 'payments.attempt': 3 }]);
    expect(tries).toHaveLength(3);
  });

  test('a fault of ours is a failed span, a rejection is none', async () => {
    const rejected = '0af7651916cd43dd8448eb211c80319d';
    const headers = { traceparent: `00-${rejected}-${SPAN}-01` };
    await service.ask('GET', '/api/v1/payments/nothing', undefined, { headers, token: null });
    await traces.flush();
    const [span] = ofTrace(rejected);
    expect(span?.attributes['http.response.status_code']).toBe(401);
    expect(span?.attributes).not.toHaveProperty('error.type');
  });
});

test('the events of endpoints and of reading name the trace of their request too', async () => {
  const own = '7bf92f3577b34da6a3ce929d0e0e4737';
  const headers = { traceparent: `00-${own}-${SPAN}-01` };
  const endpoint = { url: receiver.url };
  const made = await service.ask('POST', '/api/v1/webhook-endpoints', endpoint, { headers });
  const auditor = { token: await token('*', 'audit:read') };
  await service.ask('GET', `/audit/v1/payments/${paymentId}/events`, undefined, {
    ...auditor,
    headers,
  });
  const { text } = await service.ask('GET', '/audit/v1/events', undefined, {
    ...auditor,
    headers: { accept: 'application/x-ndjson' },
  });
  const stored = text
    .split('\n')
    .filter((line) => line.includes(own))
    .map((line) => JSON.parse(line).event);
  expect(stored.map(({ type }) => type)).toEqual(['WebhookEndpointCreated', 'AuditAccessed']);
  expect(stored[0]?.data.endpointId).toBe(made.json.id);
  await traces.flush();
  const spans = ofTrace(own).map((span) => `00-${own}-${span.spanContext().spanId}-01`);
  for (const { traceparent } of stored.map(({ context }) => context))
    expect(spans).toContain(traceparent);
});

test('a text that could be a card number leaves without it', () => {
  const said = cleaned({ 'payments.payment_id': APPROVED, 'payments.attempt': 1 });
  expect(said).toEqual({
    'payments.payment_id': expect.not.stringContaining(APPROVED.slice(0, 12)),
    'payments.attempt': 1,
  });
});

describe('a trace that a client sends', () => {
  test('is taken as W3C says: by its form, and not with ids of zeros', () => {
    const taken = { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true };
    expect(parseTraceparent(SENT)).toEqual(taken);
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)).toEqual({ ...taken, traceFlags: 0 });
    expect(parseTraceparent(`cc-${TRACE}-${SPAN}-01-later`)).toEqual(taken);
    for (const text of [
      ...[undefined, 'x', `${SENT}-more`, `${SENT}, ${SENT}`, SENT.toUpperCase()],
      `ff-${TRACE}-${SPAN}-01`,
      `00-${'0'.repeat(32)}-${SPAN}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      `00-${TRACE}-${SPAN}-1`,
      `cc-${TRACE}-${SPAN}-01later`,
    ])
      expect(parseTraceparent(text)).toBeUndefined();
  });

  test('is not taken where its ids could be a card number', async () => {
    const card = `00-a${APPROVED}${'a'.repeat(15)}-${SPAN}-01`;
    expect(parseTraceparent(card)).toBeDefined();
    expect(receivedTraceparent(card)).toBeUndefined();
    const { json } = await service.create({}, { headers: { traceparent: card } });
    const { text } = await service.ask(
      'GET',
      `/audit/v1/payments/${json.paymentId}/events`,
      undefined,
      { token: await token('*', 'audit:read') },
    );
    expect(text).not.toContain(APPROVED);
  });

  test('does not decide what is kept: its flag is one of two conditions', async () => {
    await traces.stop();
    const none = new InMemorySpanExporter();
    traces = await openTraces({ ...all, ratio: 0, mode: 'embedded', log, exporter: none });
    await service.get(paymentId, { headers: { traceparent: SENT } });
    await traces.flush();
    expect(none.getFinishedSpans()).toEqual([]);
    expect(lines.at(-1)).toMatchObject({ route: '/api/v1/payments/:paymentId', trace_id: TRACE });
  });
});
