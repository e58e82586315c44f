/**
 * The console in a browser, on a service in this process: its readers, the command line beside it, and
 * a service of payments of every kind.
 */
import { afterAll, beforeAll } from '@jest/globals';
import type { Page } from 'playwright-core';
import { launchBrowser, noBrowser, openPage, type Visit } from './browser.ts';
import { runCli } from './cli.ts';
import { describeUnless } from './describe-driver.ts';
import {
  idOf,
  leaveUnresolved,
  locatedId,
  NO_RETRIES,
  openInProcess,
  SECRET,
  signToken,
} from './service-in-process.ts';
import { until } from './until.ts';
import { startReceiver } from './webhook-receiver.ts';

const DISPUTED = '4000000000004301';
const INSUFFICIENT_FUNDS = '4000000000009995';
const EVIDENCE = 'the acquirer confirmed it by phone';

export type ConsoleWorld = Awaited<ReturnType<typeof openWorld>>;

const openWorld = async () => {
  const service = await openInProcess({
    RATE_LIMIT_PER_SECOND: '0',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    ...NO_RETRIES,
  });
  const url = await service.listen();
  const browser = await launchBrowser();
  /** Each page that was opened, with what it fetched and complained of. */
  const visits: Visit[] = [];
  const tokens = new Map<string, Promise<string>>();
  const pages = new Map<string, Visit>();
  /** The token of a reader: by default an operator of all merchants, who may resolve. */
  const tokenOf = (
    subject: string,
    merchant = '*',
    scope = 'audit:read ops:admin ops:resolve',
  ): Promise<string> => {
    const known = tokens.get(subject) ?? signToken({ merchant_id: merchant, sub: subject, scope });
    tokens.set(subject, known);
    return known;
  };
  return {
    service,
    url,
    browser,
    visits,
    tokenOf,
    /** One page for each token, which goes from address to address; one of its own with `options`. */
    visit: async (path: string, token: string, options?: object): Promise<Visit> => {
      const known = options === undefined ? pages.get(token) : undefined;
      const opened = known ?? (await openPage(browser, url, options));
      if (known === undefined) visits.push(opened);
      if (options === undefined) pages.set(token, opened);
      await opened.page.goto('about:blank');
      await opened.page.goto(`${url}${path}#token=${token}`);
      await opened.page.waitForSelector('h1');
      return opened;
    },
    /** The command line with ann's token. */
    cli: async (...args: string[]) => {
      const token = await tokenOf('ann');
      const env = { PAYMENTS_URL: url, PAYMENTS_TOKEN: token, JWT_SECRET: SECRET, NO_COLOR: '1' };
      return runCli(args, env);
    },
  };
};

/** A describe of the console, which is skipped with its reason where there is no browser. */
export const describeConsole = (name: string, tests: (world: ConsoleWorld) => void): void => {
  const missing = noBrowser();
  describeUnless(missing, name, () => {
    const world = {} as ConsoleWorld;
    beforeAll(async () => {
      Object.assign(world, await openWorld());
    });
    afterAll(async () => {
      await world.browser?.close();
      await world.service?.[Symbol.asyncDispose]();
    });
    tests(world);
  });
};

/** The ids of what `seedPayments` made. */
export type Seeded = Record<
  'refunded' | 'declined' | 'authorized' | 'disputed' | 'unresolved' | 'requested' | 'byHand',
  string
> & { [Symbol.asyncDispose](): Promise<void> };

/**
 * Payments of every kind, and two endpoints of which one fails: a partial refund with the longest
 * reference, a declined one, one without a capture, a disputed one, one of unknown outcome, as no answer came
 * of it, one that a first operator has said a word about, and one that two have resolved.
 */
export const seedPayments = async ({ service, tokenOf }: ConsoleWorld): Promise<Seeded> => {
  const receiver = await startReceiver();
  receiver.respond = ({ path }, response) => response.writeHead(path === '/no' ? 500 : 204).end();
  for (const path of ['/hook', '/no']) {
    await service.ask('POST', '/api/v1/webhook-endpoints', {
      url: receiver.url.replace('/hook', path),
    });
  }
  const reference = `order-7-${'0123456789'.repeat(9)}`;
  const sale = { captureNow: true, amount: 99_999_999 };
  const refunded = idOf(await service.create({ ...sale, merchantReference: reference }));
  await service.change('refund', refunded, { refundAmount: 500, reason: 'damaged' });
  const declined = idOf(await service.create({ number: INSUFFICIENT_FUNDS }));
  const authorized = idOf(await service.create());
  const disputed = idOf(await service.create({ captureNow: true, number: DISPUTED }));
  const isDisputed = async () => (await service.get(disputed)).json.disputes !== undefined;
  await until('the payment is disputed', isDisputed);
  const lose = async () =>
    locatedId(await leaveUnresolved(service, 'answer lost', () => service.create()));
  const [byHand, requested, unresolved] = [await lose(), await lose(), await lose()];
  service.faults.respondsToLookUps = false;
  const word = async (operator: string, id: string) =>
    service.ask(
      'POST',
      `/ops/v1/payments/${id}/resolve`,
      { outcome: 'approved', evidence: EVIDENCE },
      { token: await tokenOf(operator) },
    );
  await word('bob', requested);
  await word('ann', byHand);
  await word('bob', byHand);
  service.faults.respondsToLookUps = true;
  return {
    refunded,
    declined,
    authorized,
    disputed,
    unresolved,
    requested,
    byHand,
    [Symbol.asyncDispose]: receiver[Symbol.asyncDispose],
  };
};

/** Opens the attempts of every endpoint on a page; those of one's own that fails are open already. */
export const openAttempts = async (page: Page): Promise<void> => {
  await page.waitForSelector('summary:has-text("Attempts")');
  const closed = page.locator('details:not([open]) > summary:has-text("Attempts")');
  while ((await closed.count()) > 0) await closed.first().click();
  await page.waitForSelector('[aria-label=Attempts]');
};
