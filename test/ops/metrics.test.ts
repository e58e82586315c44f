/** Dashboard and alerts query metrics that exist, and every alert has its section in docs/runbook.md. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { ATTENTION_REASONS } from '../../command-api/back-office/attention/contract.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { VERSION } from '../../shared/runtime/version.ts';
import { testUnless } from '../support/describe-driver.ts';
import { openInProcess } from '../support/service-in-process.ts';
import { ROOT } from '../support/service-processes.ts';

type Rule = {
  alert: string;
  expr: string;
  annotations: { summary: string; description: string; runbook: string };
};

const missing =
  spawnSync('promtool', ['--version']).error === undefined ? undefined : 'no promtool is installed';

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const alerts: Rule[] = parse(read('ops/alerts.yml')).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);
const dashboard: { panels: { title: string; targets?: { expr: string }[] }[] } = JSON.parse(
  read('ops/grafana/payments.json'),
);

/** The metrics that an expression queries, without its labels. */
const namesIn = (expr: string): string[] => {
  const withoutLabels = expr
    .replace(/\{[^}]*\}/g, '')
    .replace(/"[^"]*"/g, '')
    .replace(/\bby \([^)]*\)/g, '');
  return [...withoutLabels.matchAll(/\b(?:http_server|nodejs|payments)_[a-z0-9_]+\b/g)].map(
    ([name]) => name.replace(/_(bucket|count|sum)$/, ''),
  );
};

/** The names of surfaces that others build on. */
const PROMISED = [
  'http_server_request_duration_seconds',
  'payments_commands_total',
  'payments_command_duration_seconds',
  'payments_events_appended_total',
  'payments_append_conflicts_total',
  'payments_append_failures_total',
  'payments_provider_request_duration_seconds',
  'payments_provider_breaker_open',
  'payments_attention',
  'payments_attention_oldest_seconds',
  'payments_unresolved',
  'payments_unresolved_oldest_seconds',
  'payments_store_head_position',
  'payments_projection_position',
  'payments_projection_lag_events',
  'payments_projection_lag_seconds',
  'payments_projection_rebuild_ratio',
  'payments_parked',
  'payments_read_model_differences',
  'payments_relay_lag_events',
  'payments_relay_published_total',
  'payments_chain_last_ok_timestamp_seconds',
  'payments_chain_breaks_total',
  'payments_reconcile_differences',
  'payments_reconcile_last_timestamp_seconds',
  'payments_reconcile_interval_seconds',
  'payments_log_broken',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_eventloop_lag_max_seconds',
];

let served: Set<string>;
let text: string;
beforeAll(async () => {
  await using service = await openInProcess();
  await service.create();
  ({ text } = await service.ask('GET', '/metrics'));
  served = new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name));
  // Nothing about a payment is in them (gaps §4). A number may have some digits of a card by chance.
  expect(text).not.toMatch(/m_test|pay_|"4242|4242424242424242/);
});

test('surfaces: every promised metric is served', () => {
  expect(PROMISED.filter((name) => !served.has(name))).toEqual([]);
});

test('the version, and the metrics of process and runtime, are served', () => {
  const runtime = [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'process_start_time_seconds',
  ];
  const own = [...runtime, 'nodejs_eventloop_lag_p99_seconds', 'nodejs_heap_size_used_bytes'];
  expect(own.filter((name) => !served.has(name))).toEqual([]);
  expect(text).toContain(`payments_build_info{version="${VERSION}"} 1`);
});

test('each gauge that an alert is about is a line for payments doctor before the alert', async () => {
  const metrics = createMetrics();
  expect(await metrics.troubles()).toEqual([]);
  expect(await metrics.text()).not.toMatch(/^payments_data_free_bytes /m);
  metrics.keysOutdatedSeconds.set(3000);
  metrics.headUnkeptSeconds.set(60);
  metrics.webhookEndpoints.set({ status: 'ENABLED' }, 1);
  metrics.webhookEndpoints.set({ status: 'FAILING' }, 1);
  metrics.beforeScrape(() => metrics.dataFreeBytes.set(0));
  expect(await metrics.troubles()).toEqual([
    'the keys of JWT_JWKS_URL cannot be loaded',
    'SEALED_HEAD_FILE cannot be written',
    expect.stringContaining('webhook endpoints are FAILING'),
    'DATA_DIR: less than 2 GB are free',
  ]);
});

test('the free space of the data folder is served, in bytes', () => {
  expect(Number(/^payments_data_free_bytes (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(1e6);
});

test('the embedded service is scraped, and an alert says when it is down', () => {
  const [{ job_name: job, static_configs: targets }] = parse(
    read('ops/prometheus-embedded.yml'),
  ).scrape_configs;
  expect(targets).toEqual([{ targets: ['localhost:8080'] }]);
  const down = alerts.find(({ alert }) => alert === 'PaymentsProcessDown');
  expect(down?.expr).toMatch(new RegExp(`[|"]${job}[|"]`));
});

test('in containers, an alert says of each process that Prometheus finds by its name when it is gone', () => {
  const scraped: { job_name: string }[] = parse(read('ops/prometheus.yml')).scrape_configs;
  const down = alerts.find(({ alert }) => alert === 'PaymentsProcessDown');
  const gone = down?.expr.split(/\bor max_over_time\b/).slice(1) ?? [];
  expect(gone).toHaveLength(2);
  for (const { job_name: job } of scraped)
    for (const term of gone) expect(term).toMatch(new RegExp(`[|"]${job}[|"]`));
});

testUnless(missing, 'alerts over time', () => {
  const { stdout, status } = spawnSync(
    'promtool',
    ['test', 'rules', join(ROOT, 'test/ops/alerts.promtool.yml')],
    { encoding: 'utf8' },
  );
  expect([status, stdout]).toEqual([0, expect.stringContaining('SUCCESS')]);
});

test('a rejection of each reason counts from 0, so that an alert sees the first one', () => {
  for (const reason of ['unauthorized', 'forbidden', 'rate_limited', 'misconfigured'])
    expect(text).toContain(`payments_provider_rejections_total{reason="${reason}"} 0\n`);
});

describe('ops/grafana/payments.json', () => {
  const queried = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.flatMap(({ expr }) => namesIn(expr).map((name) => [title, name] as const)),
  );

  test('queries only metrics that exist', () => {
    expect(queried.filter(([, name]) => !served.has(name))).toEqual([]);
  });

  test('shows every promised metric', () => {
    const shown = new Set(queried.map(([, name]) => name));
    expect(PROMISED.filter((name) => !shown.has(name))).toEqual([]);
  });
});

describe('ops/alerts.yml', () => {
  test.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s queries metrics that exist, and leads to its section',
    (alert, rule) => {
      const names = namesIn(rule.expr);
      expect(names.filter((name) => !served.has(name))).toEqual([]);
      // `up` is Prometheus's own.
      expect(names.length > 0 || rule.expr.startsWith('up{')).toBe(true);
      expect(rule.annotations.summary).toMatch(/\S/);
      expect(rule.annotations.description).toMatch(/\S/);
      expect(rule.annotations.runbook).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
      expect(read('docs/runbook.md')).toContain(`\n### ${alert}\n`);
    },
  );

  test.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s has each label that its description names',
    (_alert, { expr, annotations }) => {
      const named = [...annotations.description.matchAll(/\$labels\.([a-z]+)/g)];
      const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) =>
        labels.split(', '),
      );
      kept.push(...[...expr.matchAll(/"(problem|part|check)"/g)].map(([, label = '']) => label));
      if (expr.startsWith('up{')) kept.push('job', 'instance');
      expect(named.map(([, label]) => label).filter((label = '') => !kept.includes(label))).toEqual(
        [],
      );
    },
  );

  test.each(alerts.map((rule) => [rule.alert, rule] as const))(
    '%s: its section tells what to do for each condition',
    (alert, { expr }) => {
      const [, section = ''] = read('docs/runbook.md').split(`\n### ${alert}\n`);
      const conditions = [...expr.matchAll(/"(?:problem|part|check)", "([a-z_]+)"/g)];
      const missing = conditions.filter(
        ([, one]) => !new RegExp(`[\`"]${one}[\`"]`).test(section.split('\n### ')[0] ?? ''),
      );
      expect(missing.map(([, one]) => one)).toEqual([]);
    },
  );

  test('docs/runbook.md has a heading for each reason of attention', () => {
    const headings = [...read('docs/runbook.md').matchAll(/^#### ([A-Z_]+)$/gm)];
    expect(headings.map(([, name]) => name).sort()).toEqual([...ATTENTION_REASONS].sort());
    expect(alerts.length).toBeLessThanOrEqual(12);
  });

  test('docs/runbook.md has a section for each alert and no other', () => {
    const headings = [...read('docs/runbook.md').matchAll(/^### (Payments\S+)$/gm)];
    expect(headings.map(([, name]) => name).sort()).toEqual(
      alerts.map(({ alert }) => alert).sort(),
    );
  });
});
