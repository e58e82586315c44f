/** The bench's own rules: which rounds count, what the arguments mean, how findings are shown. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { barChart, lineChart } from '../../scripts/bench/chart.ts';
import { responseIn } from '../../scripts/bench/load-connection.ts';
import { BadArguments, optionsOf } from '../../scripts/bench/options.ts';
import { between, withAllGoals } from '../../scripts/bench/page.ts';
import { judge, outcomeOf, type Pair, type Round } from '../../scripts/bench/rounds.ts';
import { curveText } from '../../scripts/bench/scale-text.ts';
import { isPinned, onCpu, ROOT } from '../../scripts/bench/server.ts';
import { benchLine } from '../../scripts/bench/text.ts';
import { reckoned } from '../../scripts/bench/trend.ts';

/** A round of 1,000 requests in one second, on a CPU that was busy with them. */
const round = (cpuUsEach: number, other: Partial<Round> = {}): Round => ({
  requests: 1000,
  ms: cpuUsEach,
  perSecond: 1000,
  p50Ms: 1,
  p99Ms: 2,
  bad: 0,
  cpuShare: 0.5,
  cpuUs: cpuUsEach * 1000,
  rssBytes: 1,
  gcMs: 0,
  gcMaxMs: 0,
  delayP99Ms: 0,
  delayMaxMs: 0,
  ...other,
});
const pair = (bareUs: number, oursUs: number, other: Partial<Round> = {}): Pair => ({
  bare: round(bareUs),
  ours: round(oursUs, other),
});
const disturbances = (pairs: Pair[], waitsForDisk = false) =>
  judge(pairs, waitsForDisk).map(({ disturbance }) => disturbance);

describe('a disturbed round', () => {
  test('a server that filled its CPU was not disturbed', () => {
    expect(disturbances([pair(50, 200), pair(52, 210)])).toEqual([undefined, undefined]);
  });

  test('a server far below its CPU was, unless it had a disk to wait for', () => {
    const idle = pair(50, 200, { ms: 400 });
    expect(disturbances([idle])).toEqual(['the server had 50 % of its CPU']);
    expect(disturbances([idle], true)).toEqual([undefined]);
  });

  test('a server that the load could not fill was not', () => {
    expect(disturbances([pair(50, 200, { ms: 400, cpuShare: 0.97 })])).toEqual([undefined]);
  });

  test('a round whose bare server cost far more than in the middle was, disk or not', () => {
    const [, , third] = disturbances([pair(50, 200), pair(50, 200), pair(60, 200)], true);
    expect(third).toBe('bare cost 120 % of its middle');
  });

  test('does not count while another one does', () => {
    const idle = pair(50, 100, { ms: 200 });
    const outcome = outcomeOf(judge([pair(50, 200), idle, pair(50, 220)], false));
    expect(outcome.ours.cpuUs / outcome.ours.requests).toBe(220);
    expect(outcome.rounds).toEqual([
      '0.25',
      '0.50 (disturbed: the server had 50 % of its CPU)',
      '0.23',
    ]);
    expect(outcome.isClean).toBe(true);
  });

  test('counts where all were disturbed, and it is said', () => {
    const outcome = outcomeOf(judge([pair(50, 200, { ms: 400 })], false));
    expect(outcome.ours.cpuUs).toBe(200_000);
    expect(outcome.isClean).toBe(false);
  });
});

test('the share of bare is taken in each pair, not of two middles', () => {
  const pairs = [pair(50, 200), pair(56, 280), pair(54, 216)];
  expect(outcomeOf(judge(pairs, false)).ofBare).toBe(0.25);
});

test('the line of npm run bench names rates and p99 as ratios to bare', () => {
  const outcome = (perSecond: number, p99Ms: number) =>
    outcomeOf(
      judge(
        [
          {
            bare: round(50, { perSecond: 8000, p99Ms: 20 }),
            ours: round(200, { perSecond, p99Ms }),
          },
        ],
        false,
      ),
    );
  expect(benchLine({ create: outcome(1200, 210), GET: outcome(4000, 30) }, 1249)).toBe(
    'create 0.15 (1200 of 8000/s), p99 10.5 x (210 of 20 ms); ' +
      'GET 0.50 (4000 of 8000/s), p99 1.5 x (30 of 20 ms); start to ready 1.25 s',
  );
});

describe('arguments', () => {
  test('none measure the service in rounds of four seconds', () => {
    expect(optionsOf([])).toMatchObject({ mode: 'service', seconds: 4, write: false });
  });

  test('--scale takes the largest size, and measures at the ones below it too', () => {
    expect(optionsOf(['--scale', '3_000_000'])).toMatchObject({
      mode: 'scale',
      sizes: [10_000, 100_000, 300_000, 1_000_000, 3_000_000],
    });
    expect(optionsOf(['--scale', '50000'])?.sizes).toEqual([10_000, 50_000]);
  });

  test.each([
    [['--scale', 'many'], '--scale many: a number of payments from 1000 to 10000000'],
    [['--seconds', '0'], '--seconds 0: a number above 0, at most 60'],
    [['--peers', '--scale'], '--scale and --peers: one of them'],
    [['--peers', '5'], '5: not an option; see --help'],
    [['--fast'], "Unknown option '--fast'."],
  ])('%j is rejected in one line', (args, line) => {
    const failure = (() => {
      try {
        return optionsOf(args);
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toBeInstanceOf(BadArguments);
    const { message } = failure as Error;
    expect(message.slice(0, line.length)).toBe(line);
    expect(message).not.toContain('\n');
  });

  test('the command ends with 2 and that line alone', () => {
    const args = [join(ROOT, 'scripts/bench.ts'), '--seconds', 'x'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({
      status: 2,
      stdout: '',
      stderr: 'bench: --seconds x: a number above 0, at most 60\n',
    });
  });
});

describe('pictures', () => {
  const bars = barChart('CPU <of> a request', 'µs', [
    { name: 'bare & simple', value: 40, kind: 'bare' },
    { name: 'create', value: 160, kind: 'a', aim: 120 },
  ]);
  const curve = lineChart(
    'as it grows',
    'µs',
    [10, 100],
    [{ name: 'create', kind: 'a', values: [100, 110] }],
  );

  test('say in words what they show, to those who cannot see them', () => {
    expect(bars).toContain('<title id="title">CPU &lt;of&gt; a request</title>');
    expect(bars).toContain('<desc id="desc">bare &amp; simple 40 µs; create 160 µs, aim 120 µs.');
    expect(curve).toContain('create: 100 at 10, 110 at 100.');
  });

  test('draw a bar as long as its value is large', () => {
    const widths = [...bars.matchAll(/<rect[^>]* width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths).toEqual([90, 360]);
  });

  test('draw a curve from 0, so that one tenth more looks like one tenth', () => {
    const [, points = ''] = /<polyline[^>]* points="([^"]+)"/.exec(curve) ?? [];
    const [from = 0, to = 0] = points.split(' ').map((point) => Number(point.split(',')[1]));
    const zero = 296;
    expect((zero - to) / (zero - from)).toBeCloseTo(1.1, 2);
  });

  test('have colours of their own for a dark page, and load nothing', () => {
    expect(bars).toContain('@media (prefers-color-scheme: dark)');
    expect(bars.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|href/);
  });
});

test('what a bench found stands between its marks, and the rest of the page stays', () => {
  const page = 'a\n<!-- bench x -->\nold\n<!-- end of bench x -->\nb\n';
  const written = between(page, 'x', 'new');
  expect(written).toBe('a\n<!-- bench x -->\n\nnew\n\n<!-- end of bench x -->\nb\n');
  expect(between(written, 'x', 'new')).toBe(written);
  expect(() => between(page, 'y', 'new')).toThrow('<!-- bench y -->');
});

test('the goals of all benches stand in one table at the top, each with its section', () => {
  const goals = '| goal | aim | before | now |\n| --- | --- | --- | --- |\n';
  const page = [
    '<!-- bench goals -->\nold\n<!-- end of bench goals -->',
    `## A create, and a GET\n\n${goals}| a | ≥ 1 | 0 | 2 |\n| b | ≥ 2 | 0 | 1 |\n\ntext`,
    `## Beside others\n\n| load | CPU |\n| --- | --- |\n| c | 3 |\n\n${goals}| d | ≥ 3 | | 4 |\n`,
  ].join('\n\n');
  const written = withAllGoals(page);
  expect(written).toContain(
    [
      '| goal | aim | before | now | where |',
      '| --- | --- | --- | --- | --- |',
      '| a | ≥ 1 | 0 | 2 | [A create, and a GET](#a-create-and-a-get) |',
      '| b | ≥ 2 | 0 | 1 | [A create, and a GET](#a-create-and-a-get) |',
      '| d | ≥ 3 | | 4 | [Beside others](#beside-others) |',
      '',
      '<!-- end of bench goals -->',
    ].join('\n'),
  );
  expect(withAllGoals(written)).toBe(written);
});

test('ten million are reckoned on the line through the last three sizes', () => {
  const points = [1e4, 1e5, 1e6, 1e7].map((size) => ({
    size,
    value: size === 1e4 ? 99 : size * 2 + 5,
  }));
  expect(reckoned(points, 1e8, 'size')).toBeCloseTo(2e8 + 5, 3);
  const flat = [1e4, 1e5, 1e6].map((size) => ({ size, value: 7 + Math.log10(size) }));
  expect(reckoned(flat, 1e7, 'log')).toBeCloseTo(14, 6);
  expect(reckoned(flat.slice(0, 2), 1e7, 'log')).toBeNaN();
  const noise = [9, 5, 1].map((value, at) => ({ size: 10 ** (4 + at), value }));
  expect(reckoned(noise, 1e7, 'log')).toBeNaN();
});

describe('what goes through the whole log', () => {
  const outcome = outcomeOf(judge([pair(50, 200)], false));
  const size = {
    ...{ size: 10_000, create: outcome, GET: outcome, 'GET of the latest': outcome },
    ...{ readyMs: 600, rssBytes: 1, projectedPerSecond: 1, bytes: 1 },
  };
  const scans = { alone: round(1), beside: round(1), scansPerSecond: 1 };
  const end = {
    scans,
    onBoth: { verifiedPerSecond: 160_000, rebuiltPerSecond: 61_000 },
    onOne: { verifiedPerSecond: 90_000, rebuiltPerSecond: Number.NaN },
    rssBytes: 440 * 1024 * 1024,
  };

  test('is measured by a service with both CPUs, and by one with one', () => {
    const text = curveText([size], end);
    expect(text).toContain('| ≥ 150,000 | 54,000 | 160,000 on both CPUs, 90,000 on one |');
    expect(text).toContain('| 61,000 on both CPUs, - on one |');
    expect(text).toContain('| memory after 100,000 creates and nothing else | ≤ 350 MB |');
  });

  test('has the CPUs that it is given', () => {
    const [file, args] = onCpu('both', ['node', 'a.ts']);
    const command = [file, ...args].join(' ');
    expect(command).toBe(isPinned ? 'taskset -c 0,1 node a.ts' : 'node a.ts');
  });
});

describe('a response on a connection', () => {
  const whole = 'HTTP/1.1 201 Created\r\nContent-Length: 5\r\nx: y\r\n\r\nhello';

  test('is there when all its bytes are', () => {
    for (let length = 0; length < whole.length; length += 1)
      expect(responseIn(Buffer.from(whole.slice(0, length)))).toBeUndefined();
    const response = responseIn(Buffer.from(whole));
    expect([response?.status, response?.body()]).toEqual([201, 'hello']);
  });

  test('has to say its length', () => {
    expect(() => responseIn(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))).toThrow('without its length');
  });
});
