/** Sends spans (OTLP over HTTP); only here is the slow SDK loaded. Untaken spans are dropped. */
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import { within } from './back-off.ts';
import { looksLikeCard } from './card-numbers.ts';
import type { Config } from './config.ts';
import { countSpans, errorTypeOf, startTracing, stopTracing } from './tracing.ts';
import { VERSION } from './version.ts';

/** `message` is one line for the operator. */
export class TracesRefused extends Error {
  override name = 'TracesRefused';
}

type TracesOptions = NonNullable<Config['traces']> & {
  mode: string;
  log: Record<'info' | 'warn', (fields: object, message: string) => void>;
  exporter?: SpanExporter;
};

const WAITING_MAX = 2_048;
const EVERY_MS = 2_000;
const EXPORT_MS_MAX = 10_000;
const STOP_MS_MAX = 1_000;
/** Of a package that comes with the SDK. */
const TAKEN = 0;

const load = async () => {
  try {
    const [sdk, contexts, resources, otlp] = await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/context-async-hooks'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/exporter-trace-otlp-proto'),
    ]);
    return { ...sdk, ...contexts, ...resources, ...otlp };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new TracesRefused(
      'OTEL_EXPORTER_OTLP_ENDPOINT: the packages that send traces are not installed; run npm ci without --omit=optional, or leave the setting out',
    );
  }
};

type Queue = { waiting: number };

/** Logs each change between exported and dropped. */
const countedExporter = (
  exporter: SpanExporter,
  queue: Queue,
  log: TracesOptions['log'],
): SpanExporter => {
  let isDown = false;
  const note = (result: Parameters<Parameters<SpanExporter['export']>[1]>[0]): void => {
    const wasDown = isDown;
    isDown = result.code !== TAKEN;
    if (isDown && !wasDown)
      log.warn(
        { reason: errorTypeOf(result.error) },
        'spans are dropped: the collector of OTEL_EXPORTER_OTLP_ENDPOINT does not take them; requests are not affected',
      );
    if (wasDown && !isDown) log.info({}, 'the collector takes spans again');
  };
  return {
    export: (spans, done) => {
      queue.waiting -= spans.length;
      exporter.export(spans, (result) => {
        countSpans({ [result.code === TAKEN ? 'exported' : 'dropped']: spans.length });
        note(result);
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
};

/** The library does not count dropped spans. */
const boundedProcessor = (inner: SpanProcessor, queue: Queue): SpanProcessor => ({
  onStart: () => undefined,
  onEnd: (span: ReadableSpan) => {
    if (queue.waiting >= WAITING_MAX) countSpans({ dropped: 1 });
    else {
      queue.waiting += 1;
      inner.onEnd(span);
    }
  },
  forceFlush: () => inner.forceFlush(),
  shutdown: () => inner.shutdown(),
});

const withoutCard = (draw: () => string) => (): string => {
  let id = draw();
  while (looksLikeCard(id)) id = draw();
  return id;
};

export const openTraces = async (options: TracesOptions) => {
  const { endpoint, serviceName, ratio, mode, log } = options;
  const sdk = await load();
  const queue: Queue = { waiting: 0 };
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`;
  const send = options.exporter ?? new sdk.OTLPTraceExporter({ url });
  const batches = new sdk.BatchSpanProcessor({
    exporter: countedExporter(send, queue, log),
    maxQueueSize: WAITING_MAX,
    scheduledDelayMillis: EVERY_MS,
    exportTimeoutMillis: EXPORT_MS_MAX,
  });
  const byRatio = new sdk.TraceIdRatioBasedSampler(ratio);
  const ids = new sdk.RandomIdGenerator();
  const provider = new sdk.TracerProvider({
    // A client's flag must not decide the cost of its request.
    sampler: new sdk.ParentBasedSampler({ root: byRatio, remoteParentSampled: byRatio }),
    idGenerator: {
      generateTraceId: withoutCard(() => ids.generateTraceId()),
      generateSpanId: withoutCard(() => ids.generateSpanId()),
    },
    resource: sdk.resourceFromAttributes({
      'service.name': serviceName,
      'service.version': VERSION,
      'payments.process': mode,
    }),
    spanProcessors: [boundedProcessor(batches, queue)],
  });
  startTracing(provider, new sdk.AsyncLocalStorageContextManager());
  return {
    /** Rejects where the collector does not take the spans. */
    flush: () => provider.forceFlush(),
    /** Within a second; then makes no more spans. Never throws. */
    stop: async (): Promise<void> => {
      stopTracing();
      const late = () => new Error('the collector does not take the last spans');
      await within(STOP_MS_MAX, provider.shutdown(), late).catch(() => undefined);
    },
  };
};
export type Traces = Awaited<ReturnType<typeof openTraces>>;
