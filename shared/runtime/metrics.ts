/** Dashboards and alerts use these names. No label holds an id, a merchant or card data. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { VERSION } from './version.ts';

/** Each row is `name{labels}: help`. */
const COUNTERS = {
  chainBreaks: 'payments_chain_breaks_total: Verifications of the whole log that found a break.',
  commands: 'payments_commands_total{command,outcome}: Commands by outcome.',
  eventsAppended: 'payments_events_appended_total{type}: Events made durable.',
  erasures: 'payments_erasures_total{reason}: Payments whose texts of a person were erased.',
  appendConflicts:
    'payments_append_conflicts_total: Appends that found their stream at another revision.',
  appendFailures:
    'payments_append_failures_total: Appends that the event store did not take, or did not say so: it was full, locked, or away.',
  slowAppends:
    'payments_slow_appends_total: Operations refused because the event store took more than 4 s for their intent; the provider was not asked.',
  appendBatches: 'payments_append_batches_total: Commits that made events durable, one fsync each.',
  providerRejections:
    'payments_provider_rejections_total{reason}: Operations that the provider rejects for its key, permission, rate or account, not for a card.',
  cardLikeTexts:
    'payments_card_like_texts_total: Requests with a text that is kept and looks like the number of another card.',
  unreadableRequests:
    'payments_unreadable_requests_total: Requests rejected because the events of their payment are not whole or cannot be read.',
  relayPublished: 'payments_relay_published_total: Events sent to the topics and acknowledged.',
  webhookAttempts:
    'payments_webhook_attempts_total{outcome}: Requests to webhook endpoints, by what came of them.',
  traceSpans:
    'payments_trace_spans_total{outcome}: Spans that the collector has taken (exported), and that it has not (dropped); nothing where none is set.',
} as const;

const GAUGES = {
  buildInfo: 'payments_build_info{version}: Always 1; the label says which version runs.',
  chainLastOk:
    'payments_chain_last_ok_timestamp_seconds: When the whole log was last verified without a break, also before a restart; 0 for never.',
  logBroken:
    'payments_log_broken: 1 while the last verification of the whole log found a break, also after a restart.',
  reconcileDifferences:
    "payments_reconcile_differences{kind}: Differences between the log and the provider's ledger at the last reconciliation.",
  reconcileLast:
    'payments_reconcile_last_timestamp_seconds: When the schedule last had its turn, or log and ledger were compared, to the end; 0 for never since the start.',
  reconcileInterval:
    'payments_reconcile_interval_seconds: How often log and ledger are compared by themselves; 0 for never.',
  keysOutdatedSeconds:
    'payments_jwks_outdated_seconds: While JWT_JWKS_URL cannot be loaded: the age of the keys in use; 0 while it can.',
  breakerOpen: 'payments_provider_breaker_open: 1 while no provider call is sent.',
  clockSkewSeconds:
    'payments_clock_skew_seconds: The largest difference between the clock of this process and that of another one, in the last minutes.',
  dataFreeBytes:
    'payments_data_free_bytes: Free space where the data folder of an embedded service lies; nothing where there is none.',
  backupAgeSeconds:
    'payments_backup_age_seconds: Since the last backup of the data folder, or the start where there was none.',
  providerAhead:
    'payments_provider_ahead: 1 while the provider holds operations that the log does not, and merchants can only read.',
  sealWaitingSeconds:
    'payments_seal_waiting_seconds: Since the last seal or the start, while events wait for the next seal; 0 while none do.',
  sealIntervalSeconds:
    'payments_seal_interval_seconds: How often the log is sealed while anything is written.',
  headUnkeptSeconds:
    'payments_sealed_head_unkept_seconds: Since the signed head of the log could last be kept outside the log; 0 while it can.',
  unresolved: 'payments_unresolved: Operations whose outcome is not known.',
  unresolvedOldestSeconds:
    'payments_unresolved_oldest_seconds: Age of the oldest operation whose outcome is not known.',
  unconfirmed:
    'payments_unconfirmed: Operations that were resolved by hand and that the provider has not confirmed.',
  contradicted:
    'payments_contradicted: Operations of which the provider says other than what was resolved by hand.',
  atOtherProvider:
    'payments_unresolved_at_other_provider: Unresolved operations that were sent to another provider than the one that is set.',
  attention: 'payments_attention{reason}: What needs a person, by its reason.',
  attentionOldestSeconds:
    'payments_attention_oldest_seconds{reason}: How long the oldest of it has waited; 0 for none.',
  headPosition: 'payments_store_head_position: Position of the last event in the log.',
  projectionPosition:
    'payments_projection_position{projection}: Position up to which everything is in the read models.',
  projectionLagEvents:
    'payments_projection_lag_events: Events not yet in the read models; on EventStoreDB 1,000 stands for more.',
  projectionLagSeconds:
    'payments_projection_lag_seconds: Age of the oldest event that is not yet in the read models.',
  rebuildRatio:
    'payments_projection_rebuild_ratio: How far the running or the last rebuild has come, up to 1; 0 for none since the start.',
  parked: 'payments_parked: Payments that the projector has parked at a poison event.',
  readModelDifferences:
    'payments_read_model_differences: Payments whose read model differs from the log, by the last read or comparison of it.',
  relayLagEvents:
    'payments_relay_lag_events{topic}: Events not yet sent to the topic, on EventStoreDB 1,000 for more; nothing where no broker is set.',
  relayParked: 'payments_relay_parked: Payments that the relay has parked at a poison event.',
  webhookEndpoints: 'payments_webhook_endpoints{status}: Webhook endpoints by status.',
  webhookOldestSeconds:
    'payments_webhook_oldest_waiting_seconds: Age of the oldest event that an enabled webhook endpoint has not accepted; 0 for none.',
} as const;

const HISTOGRAMS = {
  requestSeconds:
    'http_server_request_duration_seconds{http_request_method,http_route,http_response_status_code}: Time from a request to its response.',
  commandSeconds:
    'payments_command_duration_seconds{command}: Time to carry out a command, the provider included.',
  providerSeconds:
    'payments_provider_request_duration_seconds{operation,outcome}: Time of a provider call.',
  webhookSeconds:
    'payments_webhook_attempt_duration_seconds: Time of a request to a webhook endpoint.',
} as const;

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Names<S extends string> = S extends `${infer First},${infer Rest}` ? First | Names<Rest> : S;
type LabelsOf<S> = S extends `${string}{${infer Labels}}${string}` ? Names<Labels> : never;
type Counters = { [K in keyof typeof COUNTERS]: Counter<LabelsOf<(typeof COUNTERS)[K]>> };
type Gauges = { [K in keyof typeof GAUGES]: Gauge<LabelsOf<(typeof GAUGES)[K]>> };
type Histograms = { [K in keyof typeof HISTOGRAMS]: Histogram<LabelsOf<(typeof HISTOGRAMS)[K]>> };

const metricOf = (text: string, registry: Registry) => {
  const [, name = '', labels, help = ''] = /^(\w+)(?:\{(.+?)\})?: (.+)$/.exec(text) ?? [];
  return { name, help, labelNames: labels?.split(',') ?? [], registers: [registry] };
};

const mapped = <T>(table: Record<string, string>, create: (text: string) => T) =>
  Object.fromEntries(Object.entries(table).map(([key, text]) => [key, create(text)]));

const createAll = (registry: Registry) => ({
  ...(mapped(COUNTERS, (text) => new Counter(metricOf(text, registry))) as Counters),
  ...(mapped(GAUGES, (text) => new Gauge(metricOf(text, registry))) as Gauges),
  ...(mapped(
    HISTOGRAMS,
    (text) => new Histogram({ ...metricOf(text, registry), buckets: SECONDS }),
  ) as Histograms),
});

const processRegistry = new Registry();
let collecting = false;

type Reconciled = {
  byKind: Readonly<Record<string, number>>;
  unreadable: number;
  notCompared: number;
};

/** Times are in seconds. */
export const createMetrics = () => {
  const registry = new Registry();
  const all = createAll(registry);
  if (!collecting) collectDefaultMetrics({ register: processRegistry });
  collecting = true;
  all.buildInfo.set({ version: VERSION }, 1);
  // 0 would be a full disk.
  all.dataFreeBytes.remove();
  const readings: (() => void | Promise<void>)[] = [];
  const read = () => Promise.allSettled(readings.map(async (take) => take()));
  return {
    ...all,
    reconcileScheduled: (everyMs: number): void => all.reconcileInterval.set(everyMs / 1000),
    reconciled: ({ byKind, unreadable, notCompared }: Reconciled, endedMs = Date.now()): void => {
      const kinds = { ...byKind, UNREADABLE_EVENT: unreadable, NOT_COMPARED: notCompared };
      for (const [kind, count] of Object.entries(kinds))
        all.reconcileDifferences.set({ kind }, count);
      if (notCompared === 0) all.reconcileLast.set(Math.floor(endedMs / 1000));
    },
    /** At each scrape; when it fails, the gauges keep their values. */
    beforeScrape: (take: () => void | Promise<void>): void => {
      readings.push(take);
    },
    /** What an alert tells later, for payments doctor. Never throws. */
    troubles: async (): Promise<string[]> => {
      await read();
      const numberOf = async (gauge: Gauge<'status'>, status?: string): Promise<number> =>
        (await gauge.get()).values.find(({ labels }) => labels.status === status)?.value ?? NaN;
      const lines = {
        'the keys of JWT_JWKS_URL cannot be loaded': (await numberOf(all.keysOutdatedSeconds)) > 0,
        'SEALED_HEAD_FILE cannot be written': (await numberOf(all.headUnkeptSeconds)) > 0,
        'webhook endpoints are FAILING: GET /ops/v1/webhook-endpoints names them':
          (await numberOf(all.webhookEndpoints, 'FAILING')) > 0,
        'DATA_DIR: less than 2 GB are free': (await numberOf(all.dataFreeBytes)) < 2e9,
      };
      return Object.entries(lines).flatMap(([line, holds]) => (holds ? [line] : []));
    },
    contentType: registry.contentType,
    text: async (): Promise<string> => {
      await read();
      return `${await registry.metrics()}\n${await processRegistry.metrics()}`;
    },
  };
};

export type Metrics = ReturnType<typeof createMetrics>;
