/** gaps §4: what the log and the metrics hold, and what they never hold. */
import fs, { readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { type ErrorCode, reject } from '../../shared/http/errors.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { registerHealth } from '../../shared/http/server/health.ts';
import { scrubCardNumbers } from '../../shared/runtime/card-numbers.ts';
import { createLogger, framesOf, type Log, logRequest } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const NUMBER = '4242424242424242';

const folder = folderOfTests();

let files = 0;
/** What `write` makes the log write, as text and as parsed lines. */
const written = async (write: (log: Log) => void, level: 'info' | 'warn' = 'info') => {
  files += 1;
  const file = join(folder, `${files}.log`);
  const { log, flush } = createLogger({ level, destination: { file } });
  write(log);
  flush();
  const text = () => readFileSync(file, 'utf8');
  await until('the line is in the file', () => text().endsWith('\n'));
  const lines = text().split('\n').slice(0, -1);
  return {
    file,
    text: text(),
    lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
};

const fullDisk = () => Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });

describe('gaps §4: a log line', () => {
  test('is JSON with level, UTC time and message, in a file for its owner alone', async () => {
    const { lines, file } = await written((log) => log.info({ requestId: 'r' }, 'request'));
    expect(lines).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        requestId: 'r',
        msg: 'request',
      },
    ]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('of a request is to the byte what pino would write, whatever its fields', async () => {
    const fields = fc.record({
      requestId: fc.string(),
      status: fc.integer(),
      durationMs: fc.double({ noNaN: true, noDefaultInfinity: true }),
      paymentId: fc.option(fc.string({ unit: 'binary' }), { nil: undefined }),
    });
    const samples = [
      ...fc.sample(fields, propertyRuns(200)),
      { paymentId: `pay_${NUMBER}`, merchant: '4242 4242 4242 4242' },
    ];
    const { lines } = await written((log) => {
      for (const one of samples) {
        log.info(one, 'request');
        logRequest(log, one);
      }
    });
    expect(lines).toHaveLength(2 * samples.length);
    for (let at = 0; at < lines.length; at += 2) {
      expect({ ...lines[at + 1], time: '' }).toEqual({ ...lines[at], time: '' });
      expect(Object.keys(lines[at + 1] ?? {})).toEqual(Object.keys(lines[at] ?? {}));
    }
    expect(JSON.stringify(lines)).not.toContain(NUMBER);
  });

  test('stands in the order in which lines were written, however many, and without a flush', async () => {
    const file = join(folder, 'order.log');
    const { log } = createLogger({ level: 'info', destination: { file } });
    const count = 600;
    for (let at = 0; at < count; at += 1) log.info({ at }, 'request');
    const lines = () => readFileSync(file, 'utf8').split('\n').slice(0, -1);
    await until('all lines are in the file', () => lines().length === count);
    const places = lines().map((line) => JSON.parse(line).at);
    expect(places).toEqual(Array.from({ length: count }, (_, at) => at));
  });

  test('goes on at the start of a file that a rotation has emptied', async () => {
    const file = join(folder, 'rotated.log');
    const { log, flush } = createLogger({ level: 'info', destination: { file } });
    log.info('before');
    await until('the first line is there', () => readFileSync(file, 'utf8').endsWith('\n'));
    truncateSync(file);
    log.info('after');
    flush();
    const text = () => readFileSync(file, 'utf8');
    await until('the second line is there', () => text().endsWith('\n'));
    expect(JSON.parse(text())).toMatchObject({ msg: 'after' });
  });

  test('on a full disk is written once there is room, and each line once and in order', async () => {
    const file = join(folder, 'full.log');
    const { log } = createLogger({ level: 'info', destination: { file } });
    const write = jest.spyOn(fs, 'write').mockImplementation(((...args: unknown[]) => {
      const done = args.at(-1) as (error: Error, bytes: number) => void;
      setImmediate(done, fullDisk(), 0);
    }) as typeof fs.write);
    log.info('first');
    await until('two writes have failed', () => write.mock.calls.length >= 2);
    log.info('second');
    write.mockRestore();
    const text = () => readFileSync(file, 'utf8');
    await until('both lines are in the file', () => text().split('\n').length === 3);
    expect(text()).toMatch(/"msg":"first"\}\n.*"msg":"second"\}\n$/);
  });

  test('is given up at the exit where it meets a full disk', () => {
    const file = join(folder, 'exit.log');
    const { log, flush } = createLogger({ level: 'info', destination: { file } });
    const writeSync = jest.spyOn(fs, 'writeSync');
    // There is room at the second try, so that a log that tries without an end has one here.
    writeSync.mockImplementationOnce(() => {
      throw fullDisk();
    });
    log.info('last');
    flush();
    const tries = writeSync.mock.calls.length;
    writeSync.mockRestore();
    expect(tries).toBe(1);
  });

  test('is not written below its level', async () => {
    const { lines } = await written((log) => {
      log.info('no');
      logRequest(log, {});
      log.warn('yes');
    }, 'warn');
    expect(lines.map(({ msg }) => msg)).toEqual(['yes']);
  });

  test('of an error has its type, code, message and causes, and none of its other fields', async () => {
    const cause = Object.assign(new TypeError('inner'), { code: 'E_INNER', body: 'secret' });
    const error = Object.assign(new Error('outer', { cause }), { request: 'secret' });
    const { lines, text } = await written((log) => log.error({ err: error }, 'fault'));
    expect(lines[0]?.err).toEqual({
      type: 'Error',
      message: 'outer',
      cause: { type: 'TypeError', code: 'E_INNER', message: 'inner' },
    });
    expect(text).not.toContain('secret');
  });

  test('shows signs that turn a text, and control characters, as escapes', async () => {
    const merchant = 'm_\u202e1\u2066\u200f\u061c\u009b2J\u007f\u0007\n';
    const { text, lines } = await written((log) => log.info({ merchant }, 'request'));
    expect(text).toContain('"m_\\u202e1\\u2066\\u200f\\u061c\\u009b2J\\u007f\\u0007\\n"');
    expect(lines[0]).toMatchObject({ merchant });
  });

  test('has no card, token or authorization field, also one level down', async () => {
    const secrets = { authorization: 'a1', card: { number: 'a2' }, cvv: 'a3', token: 'a4' };
    const { text } = await written((log) => log.info({ ...secrets, request: secrets }, 'request'));
    expect(text).not.toMatch(/a[1-4]/);
  });
});

/** What the log holds of requests to an app with some routes: text, ending with a request to /nowhere. */
const loggedOf = async (
  routes: (app: FastifyInstance) => void,
  request: InjectOptions,
): Promise<string> => {
  files += 1;
  const file = join(folder, `${files}.log`);
  const { log, flush } = createLogger({ level: 'info', destination: { file } });
  const app = buildApp({ log, metrics: createMetrics(), maxInFlight: 10 });
  routes(app);
  await app.inject(request);
  await app.inject('/nowhere');
  await app.close();
  flush();
  await until('the last line is in the file', () =>
    readFileSync(file, 'utf8').includes('"status":404'),
  );
  return readFileSync(file, 'utf8');
};

describe('gaps §4: the log line of a request', () => {
  test('names its route, and repeats nothing of its path, query, headers and body', async () => {
    const text = await loggedOf(
      (app) => app.post('/things/:id', (_request, reply) => reply.send('{"error":"secret6"}')),
      {
        method: 'POST',
        url: '/things/secret1?q=secret2',
        headers: { authorization: 'Bearer secret3', 'x-forwarded-for': 'secret4' },
        payload: '{"holderName":"secret5"}',
      },
    );
    const [line = ''] = text.split('\n');
    expect(JSON.parse(line)).toMatchObject({ method: 'POST', route: '/things/:id', status: 200 });
    expect(JSON.parse(line)).not.toHaveProperty('error');
    expect(text).not.toContain('secret');
  });
});

describe('the log line of a rejected request', () => {
  const rejectedAs = async (...parts: [code: ErrorCode, details: string[]]) => {
    const routes = (app: FastifyInstance) => {
      app.get('/things/:id', (_request, reply) => reject(reply, ...parts));
    };
    const [line = ''] = (await loggedOf(routes, { url: '/things/secret' })).split('\n');
    expect(line).not.toContain('secret');
    return JSON.parse(line);
  };

  test('has the code of the error and the details, at most ten, and no address', async () => {
    const line = await rejectedAs('INVALID_REQUEST', Array(11).fill('amount is required'));
    expect(line).toMatchObject({ status: 400, error: 'INVALID_REQUEST' });
    expect(line.details).toEqual(Array(10).fill('amount is required'));
    expect(line).not.toHaveProperty('client');
  });

  test('has the code alone where the service was at fault', async () => {
    const line = await rejectedAs('SERVICE_UNAVAILABLE', ['the service is shutting down']);
    expect(line.error).toBe('SERVICE_UNAVAILABLE');
    expect(line).not.toHaveProperty('details');
  });

  test('has the address of the client where it has no valid token', async () => {
    expect(await rejectedAs('UNAUTHORIZED', [])).toMatchObject({ client: '127.0.0.1' });
  });
});

test('the frames of an error name its place, and leave its message out', () => {
  const frames = framesOf(new TypeError('first\n    at secret'));
  expect(frames[0]).toContain('log.test.ts');
  expect(frames.join()).not.toContain('secret');
  expect(framesOf('no error')).toEqual([]);
});

describe('surfaces: a request to /health', () => {
  const isLogged = async (isReady: boolean) => {
    const ready = async () => ({ ready: isReady, engines: {} });
    const routes = (app: FastifyInstance) =>
      registerHealth(app, { metrics: createMetrics(), ready });
    return (await loggedOf(routes, { url: '/health/ready' })).includes('/health/ready');
  };

  test('is logged when it fails, and only at debug level when it succeeds', async () => {
    expect(await isLogged(true)).toBe(false);
    expect(await isLogged(false)).toBe(true);
  });
});

describe('gaps §4: card numbers are scrubbed from log lines', () => {
  test.each([
    ['in a message', (log: Log) => log.info(`card ${NUMBER} refused`)],
    ['as an argument', (log: Log) => log.info('card %s', NUMBER)],
    ['as a key', (log: Log) => log.info({ [NUMBER]: 1 }, 'x')],
    ['in a cause', (log: Log) => log.error({ err: new Error('x', { cause: new Error(NUMBER) }) })],
    ['among other digits', (log: Log) => log.info(`order 12 ${NUMBER} 7`)],
  ])('a card number %s is replaced', async (_name, write) => {
    const { text, lines } = await written(write);
    expect(lines).toHaveLength(1);
    expect(text.replace(/[ -]/g, '')).not.toContain(NUMBER);
    expect(text).toMatch(/9{4}/);
  });

  test('digits that cannot be a card number stay', () => {
    const line = '{"time":"2026-01-01T10:00:00.000Z","order":"424242424242","at":1234567890123}';
    expect(scrubCardNumbers(line)).toBe(line);
  });

  test('the nines that replace a card number are not replaced again', () => {
    expect(scrubCardNumbers(scrubCardNumbers(NUMBER))).toBe('9'.repeat(16));
  });

  test('whatever is logged, the line stays JSON of the same shape', () => {
    const luhn = fc
      .integer({ min: 12, max: 18 })
      .chain((length) =>
        fc.array(fc.integer({ min: 0, max: 9 }), { minLength: length, maxLength: length }),
      )
      .map((digits) => {
        const sum = digits
          .toReversed()
          .map((digit, at) => (at % 2 === 0 ? digit * 2 : digit))
          .reduce((total, digit) => total + (digit > 9 ? digit - 9 : digit), 0);
        return `${digits.join('')}${(10 - (sum % 10)) % 10}`;
      });
    fc.assert(
      fc.property(luhn, fc.jsonValue(), (number, other) => {
        const scrubbed = scrubCardNumbers(
          JSON.stringify({ other, text: `x${number}y`, number: Number(number) }),
        );
        expect(scrubbed).not.toContain(number);
        expect(Object.keys(JSON.parse(scrubbed))).toEqual(['other', 'text', 'number']);
      }),
    );
  });
});

describe('surfaces: metrics', () => {
  test('leave out values that cannot be read', async () => {
    const metrics = createMetrics();
    metrics.beforeScrape(async () => metrics.projectionLagEvents.set(7));
    metrics.beforeScrape(() => {
      throw new Error('out of reach');
    });
    const text = await metrics.text();
    expect(text).toContain('payments_projection_lag_events 7');
  });
});
