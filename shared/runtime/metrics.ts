/** Dashboards and alerts use these names. No label holds an id, a merchant or card data. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import manifest from '../../package.json' with { type: 'json' };

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const processRegistry = new Registry();
let collecting = false;
const collectProcess = (): void => {
  if (!collecting) collectDefaultMetrics({ register: processRegistry });
  collecting = true;
};

type Reconciled = {
  byKind: Readonly<Record<string, number>>;
  unreadable: number;
  notCompared: number;
};

/** Times are in seconds. */
export const createMetrics = () => {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  const histogram = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Histogram({ name, help, labelNames, registers, buckets: SECONDS });
  collectProcess();
  gauge('payments_build_info', 'Always 1; the label says which version runs.', ['version']).set(
    { version: manifest.version },
    1,
  );
  const readings: (() => void | Promise<void>)[] = [];
  const chainLastOk = gauge(
    'payments_chain_last_ok_timestamp_seconds',
    'When the whole log was last verified without a break, also before a restart; 0 for never.',
  );
  const logBroken = gauge(
    'payments_log_broken',
    '1 while the last verification of the whole log found a break, also after a restart.',
  );
  const reconcileDifferences = gauge(
    'payments_reconcile_differences',
    "Differences between the log and the provider's ledger at the last reconciliation.",
    ['kind'],
  );
  const reconcileLast = gauge(
    'payments_reconcile_last_timestamp_seconds',
    'When log and ledger were last compared to the end; 0 for never since the start.',
  );
  const reconcileInterval = gauge(
    'payments_reconcile_interval_seconds',
    'How often log and ledger are compared by themselves; 0 for never.',
  );
  const chainBreaks = counter(
    'payments_chain_breaks_total',
    'Verifications of the whole log that found a break.',
  );
  return {
    requestSeconds: histogram(
      'http_server_request_duration_seconds',
      'Time from a request to its response.',
      ['http_request_method', 'http_route', 'http_response_status_code'],
    ),
    commands: counter('payments_commands_total', 'Commands by outcome.', ['command', 'outcome']),
    commandSeconds: histogram(
      'payments_command_duration_seconds',
      'Time to carry out a command, the provider included.',
      ['command'],
    ),
    eventsAppended: counter('payments_events_appended_total', 'Events made durable.', ['type']),
    appendConflicts: counter(
      'payments_append_conflicts_total',
      'Appends that found their stream at another revision.',
    ),
    appendFailures: counter(
      'payments_append_failures_total',
      'Appends that the event store did not take, or did not say so: it was full, locked, or away.',
    ),
    appendBatches: counter(
      'payments_append_batches_total',
      'Commits that made events durable, one fsync each.',
    ),
    providerSeconds: histogram(
      'payments_provider_request_duration_seconds',
      'Time of a provider call.',
      ['operation', 'outcome'],
    ),
    providerRejections: counter(
      'payments_provider_rejections_total',
      'Operations that the provider rejects for its key, permission, rate or account, not for a card.',
      ['reason'],
    ),
    cardLikeTexts: counter(
      'payments_card_like_texts_total',
      'Requests with a text that is kept and looks like the number of another card.',
    ),
    unreadableRequests: counter(
      'payments_unreadable_requests_total',
      'Requests rejected because the events of their payment are not whole or cannot be read.',
    ),
    keysOutdatedSeconds: gauge(
      'payments_jwks_outdated_seconds',
      'While JWT_JWKS_URL cannot be loaded: the age of the keys in use; 0 while it can.',
    ),
    breakerOpen: gauge('payments_provider_breaker_open', '1 while no provider call is sent.'),
    clockSkewSeconds: gauge(
      'payments_clock_skew_seconds',
      'The largest difference between the clock of this process and that of another one, in the last minutes.',
    ),
    dataFreeBytes: gauge(
      'payments_data_free_bytes',
      'Free space where the data folder of an embedded service lies.',
    ),
    providerAhead: gauge(
      'payments_provider_ahead',
      '1 while the provider holds operations that the log does not, and merchants can only read.',
    ),
    sealWaitingSeconds: gauge(
      'payments_seal_waiting_seconds',
      'Since the last seal or the start, while events wait for the next seal; 0 while none do.',
    ),
    sealIntervalSeconds: gauge(
      'payments_seal_interval_seconds',
      'How often the log is sealed while anything is written.',
    ),
    headUnkeptSeconds: gauge(
      'payments_sealed_head_unkept_seconds',
      'Since the signed head of the log could last be kept outside the log; 0 while it can.',
    ),
    unresolved: gauge('payments_unresolved', 'Operations whose outcome is not known.'),
    unresolvedOldestSeconds: gauge(
      'payments_unresolved_oldest_seconds',
      'Age of the oldest operation whose outcome is not known.',
    ),
    unconfirmed: gauge(
      'payments_unconfirmed',
      'Operations that were resolved by hand and that the provider has not confirmed.',
    ),
    contradicted: gauge(
      'payments_contradicted',
      'Operations of which the provider says other than what was resolved by hand.',
    ),
    atOtherProvider: gauge(
      'payments_unresolved_at_other_provider',
      'Unresolved operations that were sent to another provider than the one that is set.',
    ),
    attention: gauge('payments_attention', 'What needs a person, by its reason.', ['reason']),
    attentionOldestSeconds: gauge(
      'payments_attention_oldest_seconds',
      'How long the oldest of it has waited; 0 for none.',
      ['reason'],
    ),
    headPosition: gauge('payments_store_head_position', 'Position of the last event in the log.'),
    projectionPosition: gauge(
      'payments_projection_position',
      'Position up to which everything is in the read models.',
      ['projection'],
    ),
    projectionLagEvents: gauge(
      'payments_projection_lag_events',
      'Events not yet in the read models; on EventStoreDB 1,000 stands for more.',
    ),
    projectionLagSeconds: gauge(
      'payments_projection_lag_seconds',
      'Age of the oldest event that is not yet in the read models.',
    ),
    rebuildRatio: gauge(
      'payments_projection_rebuild_ratio',
      'How far the running or the last rebuild has come, up to 1; 0 for none since the start.',
    ),
    parked: gauge('payments_parked', 'Payments that the projector has parked at a poison event.'),
    readModelSamples: counter(
      'payments_read_model_samples_total',
      'Payments whose read model was compared with the log.',
    ),
    readModelDifferences: gauge(
      'payments_read_model_differences',
      'Payments whose read model was found to differ from the log, until a rebuild or a whole comparison.',
    ),
    relayLagEvents: gauge(
      'payments_relay_lag_events',
      'Events not yet sent to the topic, on EventStoreDB 1,000 for more; nothing where no broker is set.',
      ['topic'],
    ),
    relayPublished: counter(
      'payments_relay_published_total',
      'Events sent to the topics and acknowledged.',
    ),
    relayParked: gauge(
      'payments_relay_parked',
      'Payments that the relay has parked at a poison event.',
    ),
    webhookAttempts: counter(
      'payments_webhook_attempts_total',
      'Requests to webhook endpoints, by what came of them.',
      ['outcome'],
    ),
    webhookSeconds: histogram(
      'payments_webhook_attempt_duration_seconds',
      'Time of a request to a webhook endpoint.',
    ),
    webhookEndpoints: gauge('payments_webhook_endpoints', 'Webhook endpoints by status.', [
      'status',
    ]),
    webhookOldestSeconds: gauge(
      'payments_webhook_oldest_waiting_seconds',
      'Age of the oldest event that an enabled webhook endpoint has not accepted; 0 for none.',
    ),
    traceSpans: counter(
      'payments_trace_spans_total',
      'Spans that the collector has taken (exported), and that it has not (dropped); nothing where none is set.',
      ['outcome'],
    ),
    chainVerified: (ok: boolean): void => {
      logBroken.set(ok ? 0 : 1);
      if (ok) chainLastOk.set(Math.floor(Date.now() / 1000));
      else chainBreaks.inc();
    },
    reconcileScheduled: (everyMs: number): void => reconcileInterval.set(everyMs / 1000),
    reconciled: (
      { byKind, unreadable, notCompared }: Reconciled,
      endedMs: number = Date.now(),
    ): void => {
      const kinds = { ...byKind, UNREADABLE_EVENT: unreadable, NOT_COMPARED: notCompared };
      for (const [kind, count] of Object.entries(kinds)) reconcileDifferences.set({ kind }, count);
      if (notCompared === 0) reconcileLast.set(Math.floor(endedMs / 1000));
    },
    /** Before this start; `lastOkMs` since 1970. */
    chainWas: ({ lastOkMs, isBroken }: { lastOkMs: number; isBroken: boolean }): void => {
      logBroken.set(isBroken ? 1 : 0);
      chainLastOk.set(Math.floor(lastOkMs / 1000));
    },
    /** At each scrape; when it fails, the gauges keep their values. */
    beforeScrape: (take: () => void | Promise<void>): void => {
      readings.push(take);
    },
    contentType: registry.contentType,
    /** Never throws. */
    text: async (): Promise<string> => {
      await Promise.allSettled(readings.map(async (take) => take()));
      return `${await registry.metrics()}\n${await processRegistry.metrics()}`;
    },
  };
};

export type Metrics = ReturnType<typeof createMetrics>;
