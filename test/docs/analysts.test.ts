/** The queries of docs/analysts.md name fields that the messages have, and DuckDB runs its own ones. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SCENARIO_NAMES } from '../../cli/dev/scenarios.ts';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { runCli } from '../support/cli.ts';
import type { Body } from '../support/service-client.ts';
import {
  type InProcess,
  idOf,
  openInProcess,
  PAYMENTS,
  token,
} from '../support/service-in-process.ts';
import { ROOT } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const INSUFFICIENT_FUNDS = '4000000000009995';

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const page = read('docs/analysts.md');

/** The fields of a message's data, by the schemas of all messages. */
const fields = new Set(
  readdirSync(join(ROOT, 'docs/schemas')).flatMap((name) =>
    Object.keys(JSON.parse(read(`docs/schemas/${name}`)).properties ?? {}),
  ),
);

test('every field that a query reads is one of the messages', () => {
  const named = [
    ...[...page.matchAll(/\bdata\.(\w+)/g)].map(([, name = '']) => name),
    ...[...page.matchAll(/'data', '(\w+)'/g)].map(([, name = '']) => name),
  ];
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !fields.has(name))).toEqual([]);
});

test('the topics and the flags of the page are those of the command line', () => {
  const verbs = read('cli/topics.ts');
  const flags = [...page.matchAll(/topics tail .*?(--\w+)/g)].map(([, flag = '']) => flag);
  expect(flags.filter((flag) => !verbs.includes(flag))).toEqual([]);
});

test('the reader is started with a Node that reads TypeScript, whatever Node is installed', () => {
  for (const text of [page, read('examples/consumer.ts')]) {
    expect(text).toContain('npx node examples/consumer.ts');
    expect(text).not.toMatch(/(?<!npx )node examples/);
  }
});

/** The page's statements for DuckDB, with its files in `folder`. */
const sqlOf = (folder: string): string[] =>
  page
    .split('\n## ')
    .filter((section) => !section.startsWith('ClickHouse'))
    .flatMap((section) => [...section.matchAll(/```sql\n([^`]*)```/g)].map(([, sql = '']) => sql))
    .map((sql) => sql.replace(/'((state|events|log)\.jsonl|events(\/[^']*)?)'/g, `'${folder}/$1'`));

/** What cards of the simulator have happen later, by itself, to their sale and their authorization. */
const LATER_OF_CARDS = 9;
const LATER_OF_TRIGGERS = 10;
const LATER_OF_OWN = 7;

describe('the report of a day', () => {
  const OTHER = 'm_é 1';
  /** It has a sale and an authorization by each card of the simulator, and one payment of each trigger. */
  const EVERYTHING = 'm_everything';
  const folder = temporaryFolder();
  const eventsFile = join(folder.path, 'events.jsonl');
  let service: InProcess;
  let duckdb: DuckDBConnection;

  const query = async (sql: string) => (await duckdb.runAndReadAll(sql)).getRowObjectsJson();
  const sell = async (behaviour: string): Promise<string> => {
    const number = TEST_CARDS.find((card) => card.behaviour === behaviour)?.number ?? '';
    return idOf(await service.create({ captureNow: true, number }));
  };

  beforeAll(async () => {
    service = await openInProcess({ PROVIDER_TIMEOUT_MS: '2500' });
    const env = {
      PAYMENTS_URL: await service.listen(),
      PAYMENTS_TOKEN: await token('*', 'audit:read ops:admin'),
    };
    const cliAs = async (PAYMENTS_TOKEN: string, ...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await runCli(args, { ...env, PAYMENTS_TOKEN });
      expect([code, stderr]).toEqual([0, expect.any(String)]);
      return stdout;
    };
    const cli = (...args: string[]) => cliAs(env.PAYMENTS_TOKEN, ...args);
    const ofEverything = await token(EVERYTHING);
    const byCards = TEST_CARDS.flatMap(({ number }) =>
      [true, false].map((captureNow) =>
        service.create({ captureNow, number }, { token: ofEverything }),
      ),
    );
    for (const name of SCENARIO_NAMES) await cliAs(ofEverything, 'trigger', name);
    await Promise.all(byCards);
    const part = idOf(await service.create({ amount: 9_000 }));
    await service.change('capture', part, { captureAmount: 7_000 });
    await service.change('refund', part, { refundAmount: 1_234 });
    await service.change('void', idOf(await service.create()));
    await service.create({ number: INSUFFICIENT_FUNDS });
    await service.create({ captureNow: true }, { token: await token(OTHER) });
    await service.change('refund', await sell('REFUND_FAILS'), { refundAmount: 600 });
    await sell('REFUNDED_ELSEWHERE');
    for (const behaviour of ['DISPUTED', 'DISPUTE_WON', 'DISPUTE_LOST']) await sell(behaviour);
    const later =
      /"type":"payments\.Payment(RefundFailed|\w+Observed|AuthorizationExpired|Disputed|DisputeClosed)/g;
    let events = '';
    await until('all that the provider says later is there', async () => {
      events = await cli('topics', 'tail', '--topic', 'events');
      return events.match(later)?.length === LATER_OF_OWN + LATER_OF_CARDS + LATER_OF_TRIGGERS;
    });
    const [first = ''] = events.split('\n');
    // A message can come twice.
    writeFileSync(eventsFile, `${events}${first}\n`);
    writeFileSync(
      join(folder.path, 'state.jsonl'),
      await cli('topics', 'tail', '--topic', 'state'),
    );
    await cli('export', '--out', join(folder.path, 'log.jsonl'));
    duckdb = await (await DuckDBInstance.create(':memory:')).connect();
    // 14 hours ahead of UTC: a day by the session's zone would be another one.
    await duckdb.run("SET TimeZone = 'Pacific/Kiritimati'");
    for (const sql of sqlOf(folder.path)) await duckdb.run(sql);
  });
  afterAll(async () => {
    duckdb?.closeSync();
    await service?.[Symbol.asyncDispose]();
    folder.remove();
  });

  const sumOf = (payments: readonly Body[], field: string): number =>
    payments.reduce((sum, payment) => sum + Number(payment[field]), 0);

  const paymentsOf = async (merchant: string): Promise<Body[]> => {
    const asking = { token: await token(merchant) };
    const { json } = await service.ask('GET', `${PAYMENTS}?limit=100`, undefined, asking);
    return json.payments as Body[];
  };
  const reportOf = async (merchant: string) => {
    const sums = "sum(COLUMNS('payments|_minor'))::INT";
    const of = `WHERE merchant_id = '${merchant}'`;
    return (await query(`SELECT ${sums} FROM day_report ${of}`))[0];
  };

  test('has the sums of the API for a payment by every card and every trigger', async () => {
    const payments = await paymentsOf(EVERYTHING);
    expect(payments).toHaveLength(2 * TEST_CARDS.length + SCENARIO_NAMES.length);
    const [captured, refunded] = ['capturedAmount', 'refundedAmount'].map((field) =>
      sumOf(payments, field),
    );
    const report = await reportOf(EVERYTHING);
    expect(report).toMatchObject({
      payments: payments.length,
      captured_minor: captured,
      refunded_minor: refunded,
    });
    expect(sumOf(payments, 'refundableAmount')).toBe(
      Number(captured) - Number(refunded) - Number(report?.lost_minor),
    );
    expect(payments.filter(({ status }) => status === 'PENDING')).toEqual([]);
  });

  test('has its own line for a merchant with signs in its name, and the state topic the same sums', async () => {
    expect(await reportOf(OTHER)).toMatchObject({ payments: 1, captured_minor: 2_500 });
    const known = { payments: 8, captured_minor: 19_500, refunded_minor: 1_334 };
    const disputes = { disputed_minor: 7_500, won_minor: 2_500, lost_minor: 2_500 };
    expect(await reportOf('m_test')).toMatchObject({ ...known, ...disputes });
    const state = await query(
      "SELECT sum(refunded_minor)::INT AS refunded FROM payments WHERE merchant_id = 'm_test'",
    );
    expect(state).toEqual([{ refunded: 1_334 }]);
  });

  test('lists the disputes with what became of them', async () => {
    const found = await query(
      "SELECT status, amount_minor::INT AS amount FROM disputes WHERE merchant_id = 'm_test' ORDER BY 1",
    );
    expect(found).toEqual(['LOST', 'OPEN', 'WON'].map((status) => ({ status, amount: 2_500 })));
  });

  test('is of days of UTC, and a refund that bounces lowers the day that it bounces on', async () => {
    const lines = readFileSync(eventsFile, 'utf8')
      .split('\n')
      .filter((line) =>
        /"\/payments\/m_test".*Payment(Refunded|RefundFailed)\.v1.*"amount":600,/.test(line),
      )
      .map((line, at) => {
        const time = ['2026-01-01T23:59:59.999Z', '2026-01-02T00:00:00.000Z'][at];
        return JSON.stringify({ ...JSON.parse(line), time });
      });
    expect(lines).toHaveLength(2);
    writeFileSync(eventsFile, `${lines.join('\n')}\n`);
    expect(
      await query(
        'SELECT day::VARCHAR AS day, refunded_minor::INT AS refunded FROM day_report ORDER BY 1',
      ),
    ).toEqual([
      { day: '2026-01-01', refunded: 600 },
      { day: '2026-01-02', refunded: -600 },
    ]);
  });
});
