/**
 * gaps §4, §19: full number and CVV live in memory for one provider call and reach nothing else, and a text of a
 * person reaches the answers to its merchant alone. Those of this run, which exist nowhere else, are sent on every
 * path at log level trace; then every byte that the service has stored or sent is searched for them.
 */
import { connect } from 'node:net';
import { expect } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { luhnNumber, searchFor } from './card-search.ts';
import { timesOf } from './long-run-share.ts';
import { filesIn, findings, PERSONAL } from './personal-canaries.ts';
import { randomOf } from './random.ts';
import { type Service, startService } from './service-processes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const PAYMENTS = '/api/v1/payments';
const AT_ONCE = 8;
const ROUNDS = timesOf(10, 3);

const random = randomOf();
const digits = (count: number): string =>
  Array.from({ length: count }, () => random.between(0, 9)).join('');

/** Visa, Mastercard and Amex numbers of this run. */
const newNumber = (): string => {
  const kind = random.between(0, 2);
  if (kind === 0) return luhnNumber(`4${digits(14)}`);
  if (kind === 1) return luhnNumber(`5${random.between(1, 5)}${digits(13)}`);
  return luhnNumber(`37${digits(12)}`);
};

const numbers: string[] = [];
const cvvs: string[] = [];
const tokens: string[] = [];

export type Canary = { number: string; cvv: string; holderName: string };

/** A card whose number and CVV are searched for afterwards. */
const canary = (number = newNumber()): Canary => {
  // Longer than any text that ids, keys and hashes have by chance.
  const cvv = `CVV of canary ${String(cvvs.length).padStart(4, '0')}`;
  numbers.push(number);
  cvvs.push(cvv);
  return { number, cvv, holderName: `Canary ${cvvs.length}` };
};

export const blocks = (number: string, gap: string): string =>
  number.replace(/(\d{4})(?=\d)/g, `$1${gap}`);

const withCard = (card: object, fields: object = {}) => ({
  ...payment,
  ...PERSONAL,
  ...fields,
  paymentMethod: { type: 'CARD', card: { ...payment.paymentMethod.card, ...card } },
});

/** Everything that came back, headers too. */
const responses: string[] = [];
/** The statuses of each path: they show that its requests took the path that was meant. */
const statuses = new Map<string, number[]>();

export type Path = { name: string; expected: number[]; go(service: Service): Promise<number> };

const note = (status: number, headers: Headers, text: string): number => {
  responses.push(`${JSON.stringify([...headers])}\n${text}`);
  return status;
};

const post = async (
  service: Service,
  body: unknown,
  headers: Record<string, string> = {},
  path = '',
): Promise<number> => {
  const response = await service.post(`${PAYMENTS}${path}`, body, headers);
  return note(response.status, response.headers, response.text);
};

/** A create with a new card each time, and the status that it is to have. */
const create = (
  name: string,
  expected: number,
  bodyOf: (card: Canary) => unknown,
  headersOf: (card: Canary) => Record<string, string> = () => ({}),
): Path => ({
  name,
  expected: [expected],
  go: async (service) => {
    const card = canary();
    return post(service, bodyOf(card), headersOf(card));
  },
});

/** A payment is made, then something that holds its number is sent to one of its routes. */
const change = (
  name: string,
  expected: number,
  path: string,
  send: (card: Canary) => { body?: unknown; headers?: Record<string, string> },
): Path => ({
  name,
  expected: [expected],
  go: async (service) => {
    const card = canary();
    const made = await service.post(PAYMENTS, withCard(card, { captureNow: path === '/refund' }));
    const { body, headers } = send(card);
    const got = await service.get(`${PAYMENTS}/${made.json.paymentId}`);
    note(got.status, got.headers, got.text);
    return post(service, body, headers, `/${made.json.paymentId}${path}`);
  },
});

const bareGet = (name: string, expected: number, pathOf: (number: string) => string): Path => ({
  name,
  expected: [expected],
  go: async (service) => {
    const { number } = canary();
    const response = await service.get(pathOf(number), {
      'user-agent': number,
      referer: `http://shop/${number}`,
    });
    return note(response.status, response.headers, response.text);
  },
});

/** Bytes that are no HTTP request, with a number among them. */
const brokenHttp: Path = {
  name: 'no HTTP at all',
  expected: [400],
  go: (service) =>
    new Promise((resolve, reject) => {
      const { number } = canary();
      const socket = connect(service.port, '127.0.0.1');
      let received = '';
      socket.setEncoding('utf8').on('data', (part: string) => {
        received += part;
      });
      socket.on('error', reject).on('close', () => {
        responses.push(received);
        resolve(Number(received.split(' ')[1]));
      });
      socket.end(`PAY ${number} NOW\r\nx-${number}: ${number}\r\n\r\n`);
    }),
};

const paths: Path[] = [
  create('approved', 200, (card) => withCard(card)),
  create('sold', 200, (card) => withCard(card, { captureNow: true })),
  create('no such number', 402, (card) => {
    const wrong = `${card.number.slice(0, -1)}${(Number(card.number.at(-1)) + 1) % 10}`;
    numbers.push(wrong);
    return withCard({ ...card, number: wrong });
  }),
  create(
    'keyed',
    200,
    (card) => withCard(card),
    (card) => ({ 'idempotency-key': card.holderName.replace(' ', '-') }),
  ),
  {
    name: 'replayed, and reused with another card',
    expected: [422],
    go: async (service) => {
      const card = canary();
      const headers = { 'idempotency-key': `replay-${numbers.length}` };
      await post(service, withCard(card), headers);
      await post(service, withCard(card), headers);
      return post(service, withCard({ ...canary(), holderName: card.holderName }), headers);
    },
  },
  create('invalid', 400, (card) => withCard(card, { currency: 'usd', amount: -1 })),
  create('over the maximum', 422, (card) => withCard(card, { amount: 999_999_999 })),
  create('number as the amount', 400, (card) => withCard(card, { amount: Number(card.number) })),
  create('another currency', 422, (card) => withCard(card, { currency: 'EUR' })),
  create('broken JSON', 400, (card) => JSON.stringify(withCard(card)).slice(0, -2)),
  create('broken right behind the number', 400, (card) => `{"number":"${card.number}" oops`),
  create('over-size', 413, (card) => withCard(card, { padding: 'x'.repeat(70_000) })),
  create('number as a JSON number', 400, (card) =>
    withCard({ ...card, number: Number(card.number) }),
  ),
  create('number with spaces', 400, (card) =>
    withCard({ ...card, number: blocks(card.number, ' ') }),
  ),
  create('number in the reference', 400, (card) =>
    withCard(card, { merchantReference: card.number }),
  ),
  create('number in the descriptor', 400, (card) =>
    withCard(card, { descriptor: `paid by ${blocks(card.number, ' ')}` }),
  ),
  create('number in an item', 400, (card) =>
    withCard(card, {
      productItems: [{ ...payment.productItems[0], name: blocks(card.number, '-') }],
    }),
  ),
  create('number as holder', 400, (card) => withCard({ ...card, holderName: card.number })),
  create('number as expiry', 400, (card) => withCard({ ...card, expiryYear: card.number })),
  create('number as currency', 400, (card) => withCard(card, { currency: card.number })),
  create(
    'no token',
    401,
    (card) => withCard(card),
    () => ({ authorization: 'none' }),
  ),
  create(
    'number as token',
    401,
    (card) => withCard(card),
    ({ number }) => ({ authorization: `Bearer ${number}` }),
  ),
  create(
    'number as Idempotency-Key',
    400,
    (card) => withCard(card),
    ({ number }) => ({ 'idempotency-key': number }),
  ),
  change('capture, number in reason', 400, '/capture', ({ number }) => ({
    body: { reason: number },
  })),
  change('refund, number in reason', 400, '/refund', ({ number }) => ({
    body: { reason: blocks(number, ' ') },
  })),
  change('capture, number as Idempotency-Key', 400, '/capture', ({ number }) => ({
    headers: { 'idempotency-key': number },
  })),
  change('capture, number as amount', 400, '/capture', ({ number }) => ({
    body: { captureAmount: Number(number) },
  })),
  change('void, number in the body it ignores', 200, '/void', (card) => ({ body: withCard(card) })),
  bareGet('number as paymentId', 404, (number) => `${PAYMENTS}/${number}`),
  bareGet('number in an id too long', 400, (number) => `${PAYMENTS}/${number.repeat(3)}`),
  bareGet('number in the query', 404, (number) => `${PAYMENTS}/pay_none?card=${number}`),
  bareGet('number as route', 404, (number) => `/${number}`),
  bareGet('number behind a broken escape', 400, (number) => `${PAYMENTS}/%zz${number}`),
  brokenHttp,
];

/** A create with one of the provider's test numbers, which decide the outcome; its CVV is its own. */
export const testCard = (number: string, expected: number, first = () => {}): Path => ({
  name: `test card ${number} ${expected}`,
  expected: [expected],
  go: (service) => {
    first();
    return post(service, withCard(canary(number)));
  },
});

/** A create with a token that a shop got for a new card. */
export const withToken = (tokenFor: (card: Canary) => Promise<string>): Path => ({
  name: 'token',
  expected: [200],
  go: async (service) => {
    const card = canary();
    const token = await tokenFor(card);
    tokens.push(token);
    const paymentMethod = { type: 'CARD', card: { token, holderName: card.holderName } };
    return post(service, { ...payment, paymentMethod });
  },
});

const walkAll = async (service: Service, oneByOne: readonly Path[]): Promise<void> => {
  const walkOne = async ({ name, go }: Path): Promise<void> => {
    const seen = statuses.get(name) ?? [];
    statuses.set(name, seen);
    seen.push(await go(service));
  };
  for (const path of oneByOne) await walkOne(path);
  const left = Array.from({ length: ROUNDS }, () => paths)
    .flat()
    .values();
  const walk = async (): Promise<void> => {
    for (const path of left) await walkOne(path);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, walk));
};

const CVV_SHAPE = /cvv["'\\\s]*[:=]["'\\\s]*[A-Za-z0-9]+/gi;

/** What of this run's numbers, CVVs and tokens stands in a text. */
export const cardDataIn = (text: string): string[] => [
  ...searchFor(numbers)(text),
  ...[...cvvs, ...tokens].filter((secret) => text.includes(secret)),
  ...(text.match(CVV_SHAPE) ?? []),
];

/**
 * Walks every path at log level trace, some of them one by one before the others, and searches all
 * that the service has stored or sent.
 */
export const expectNoCardData = async (
  env: NodeJS.ProcessEnv,
  oneByOne: readonly Path[],
): Promise<void> => {
  const { path: dataDir, remove } = temporaryFolder();
  await using service = await startService({ dataDir, env: { LOG_LEVEL: 'trace', ...env } });
  await walkAll(service, oneByOne);
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  service.kill('SIGKILL');
  await service.exited;
  for (const { name, expected } of [...paths, ...oneByOne]) {
    expect([name, ...new Set(statuses.get(name))]).toEqual([name, ...expected]);
  }
  expect(new Set(numbers).size).toBeGreaterThan(ROUNDS * 30);

  const kept = new Map(filesIn(dataDir));
  remove();
  kept.set('stdout', service.stdout());
  kept.set('stderr', service.stderr());
  kept.set('responses', responses.join('\n'));
  kept.set('metrics', metrics);
  // The search reads what may be stored, the write-ahead log included.
  expect([...kept.keys()]).toEqual(
    expect.arrayContaining(['events.sqlite-wal', 'read-models.sqlite']),
  );
  expect(kept.get('events.sqlite-wal')).toContain('"last4"');
  expect(kept.get('responses')).toContain('Canary 1');
  expect(kept.get('stdout')).toContain('"route"');
  for (const [name, text] of kept) expect([name, cardDataIn(text)]).toEqual([name, []]);
  kept.delete('responses');
  expect(findings(kept)).toEqual([]);
};
