/**
 * The console in a real browser, on a service with payments of every kind: the five stories of
 * docs/console.md, told to the end; `npm test` tells one of them. With TEST_PICTURES set, each page's
 * picture is taken for the docs.
 */

import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, jest, test } from '@jest/globals';
import { seriousViolations } from '../support/accessibility.ts';
import { BROWSER_MS, type Visit } from '../support/browser.ts';
import { describeConsole } from '../support/console-world.ts';
import { idOf, leaveUnresolved, locatedId, SECRET, signToken } from '../support/in-process.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { ROOT } from '../support/service.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

jest.setTimeout(2 * BROWSER_MS);

const PICTURES = join(ROOT, 'docs/pictures');
const OPERATOR = 'audit:read ops:admin ops:resolve';

describeConsole('the console', (world) => {
  const cli = async (...args: string[]): Promise<string> => (await world.cli(...args)).stdout;

  /** No serious finding of axe; and a picture for the docs, where they are wanted. */
  const look = async (opened: Visit, name: string): Promise<void> => {
    expect(await seriousViolations(opened.page)).toEqual([]);
    if (process.env.TEST_PICTURES === undefined) return;
    await mkdir(PICTURES, { recursive: true });
    await opened.page.screenshot({ path: join(PICTURES, `console-${name}.png`) });
  };

  let refunded: string;
  let declined: string;
  beforeAll(async () => {
    const { service } = world;
    refunded = idOf(await service.create({ captureNow: true, merchantReference: 'order-7' }));
    await service.change('refund', refunded, { refundAmount: 500 });
    declined = idOf(await service.create({ number: '4000000000009995' }));
    idOf(await service.create());
  });

  /** What the browser keeps of the page; nothing is `[{},{},""]`. */
  const STORED = 'JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])';

  testOfLongRun(
    'the token is stored where the reader wants it, until it is forgotten',
    async () => {
      const { page } = await world.visit('/console', await world.tokenOf('ann'));
      await page.reload();
      await page.fill('#token', await world.tokenOf('ann'));
      await page.check('[name=keep]');
      await page.click('button[type=submit]');
      await page.waitForSelector('h1:has-text("Live")');
      await page.reload();
      await page.waitForSelector('h1:has-text("Live")');
      await page.click('text=Forget the token');
      await page.waitForSelector('#token');
      expect(await page.evaluate(STORED)).toBe('[{},{},""]');
    },
  );

  test('a link with the token of another reader asks before it takes the place of an open session', async () => {
    const [ann, bob] = [await world.tokenOf('ann'), await world.tokenOf('bob')];
    const { page } = await world.visit('/console', ann, {});
    const questions: string[] = [];
    let goOn = false;
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      return goOn ? dialog.accept() : dialog.dismiss();
    });
    const follow = async (token: string, reader: string): Promise<void> => {
      await page.evaluate(`location.hash = 'token=${token}'`);
      await page.waitForFunction(`location.hash === ''`);
      await page.waitForSelector(`.reader:has-text("${reader}")`);
    };
    await follow(ann, 'ann');
    expect(questions).toEqual([]);
    await follow(bob, 'ann');
    expect(questions).toEqual([
      expect.stringMatching(
        /the token of bob \(all merchants\)\. The console is open for ann \(all/,
      ),
    ]);
    goOn = true;
    await follow(bob, 'bob');
    expect(questions).toHaveLength(2);
    await page.click('text=Forget the token');
    await page.fill('#token', ann);
    await page.check('[name=keep]');
    await page.click('button[type=submit]');
    await page.waitForSelector('.reader:has-text("ann")');
    goOn = false;
    // Another address of the console: the page is loaded anew, and the tab keeps the session.
    await page.goto(`${world.url}/console/verify#token=${bob}`);
    await page.waitForSelector('.reader:has-text("ann")');
    expect(questions).toHaveLength(3);
    goOn = true;
    await page.goto(`${world.url}/console/find#token=${bob}`);
    await page.waitForSelector('.reader:has-text("bob")');
    await page.reload();
    await page.waitForSelector('#token');
    expect(await page.evaluate(STORED)).toBe('[{},{},""]');
  });

  test('story: an auditor finds a payment by its last four digits and takes its events along, and the token in the address is stored nowhere', async () => {
    const opened = await world.visit('/console/find', await world.tokenOf('ann'));
    const { page } = opened;
    expect(page.url()).toBe(`${world.url}/console/find`);
    expect(await page.evaluate(STORED)).toBe('[{},{},""]');
    await page.keyboard.type('9995');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=9995/);
    const link = page.locator('tbody a.id');
    await link.waitFor();
    expect(await link.allInnerTexts()).toEqual([declined]);
    await look(opened, 'find');
    await link.focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=Verified: 2 events');
    const files = new Map<string, string>();
    page.on('download', async (download) => {
      const file = join(tmpdir(), `${process.pid}-${download.suggestedFilename()}`);
      await download.saveAs(file);
      files.set(download.suggestedFilename(), file);
    });
    await page.click('text=Download the events');
    await page.waitForSelector('text=Saved, with its manifest');
    await until('both files are saved', () => files.size === 2);
    const saved = files.get(`${declined}.jsonl`) ?? '';
    expect(await cli('verify', '--file', saved)).toMatch(/^intact {2}2 events/);
  });

  testOfLongRun('story: why a refund was refused, in the words of the command line', async () => {
    const opened = await world.visit(`/console/payments/${refunded}`, await world.tokenOf('ann'));
    const { page } = opened;
    await page.fill('[name=amount]', '99.99');
    await page.click('button:has-text("Explain")');
    const said = (await page.locator('[aria-live] .finding').innerText()).slice(2);
    const [line = ''] = (await cli('explain', refunded, 'refund', '--amount', '9999')).split('\n');
    expect(said.replace(/\s+/g, ' ')).toBe(line.replace(/\s+/g, ' '));
    await look(opened, 'explain');
  });

  testOfLongRun('story: what was true at a moment, and what is different now', async () => {
    const opened = await world.visit(
      `/console/payments/${refunded}?revision=2`,
      await world.tokenOf('ann'),
    );
    const { page } = opened;
    await page.waitForSelector('text=What GET answered then');
    const shown = JSON.parse(
      await cli('events', refunded, '--state', '--at', '2', '--format', 'json'),
    );
    await page.click('summary:has-text("The whole body")');
    const body = await page.locator('details[open] pre').innerText();
    expect(JSON.parse(body)).toEqual(shown.payment);
    const paths = await page.locator('[aria-label=Differences] tbody th').allInnerTexts();
    expect(paths).toEqual(shown.differences.map(({ path }: { path: string }) => path));
    await page.locator('h1').click();
    await page.keyboard.press('ArrowRight');
    await page.waitForURL(/revision=3/);
    await page.waitForSelector('h2:has-text("At revision 3")');
    await look(opened, 'payment');
  });

  testOfLongRun('story: two operators resolve an unknown outcome', async () => {
    const left = await leaveUnresolved(world.service, 'answer lost', () => world.service.create());
    const paymentId = locatedId(left);
    world.service.faults.respondsToLookUps = false;
    const path = '/console/operate/unresolved';
    const first = await world.visit(path, await world.tokenOf('ann'));
    const second = await world.visit(path, await world.tokenOf('bob'));
    const word = async ({ page }: Visit): Promise<void> => {
      const card = page.locator('.card', { hasText: paymentId });
      await card.locator('details:has(form) > summary').click();
      await card.locator('textarea').fill('the acquirer confirmed it by phone');
      await card.locator('form button').click();
    };
    await word(first);
    await first.page.waitForSelector('text=Nothing is recorded until another operator');
    await second.page.waitForSelector('text=ann requested APPROVED');
    await look(second, 'operate');
    const list = await world.visit('/console/operate/attention', await world.tokenOf('ann'));
    await list.page.waitForSelector('.card:has-text("RESOLUTION_REQUESTED")');
    expect(await list.page.locator('.card code').innerText()).toBe('payments unresolved');
    expect(await seriousViolations(list.page)).toEqual([]);
    await word(second);
    await second.page.waitForSelector('text=Resolved by hand, not confirmed yet');
    world.service.faults.respondsToLookUps = true;
    const history = await world.visit(`/console/payments/${paymentId}`, await world.tokenOf('ann'));
    await history.page.waitForSelector('.by-hand');
    expect(await history.page.locator('.by-hand').count()).toBe(2);
    await look(history, 'by-hand');
  });

  testOfLongRun('story: a merchant watches its own payment arrive', async () => {
    const merchant = await world.tokenOf('shop', 'm_test', 'payments:read');
    const opened = await world.visit('/console', merchant);
    const { page } = opened;
    await page.waitForSelector('h1:has-text("My payments")');
    expect(await page.locator('nav a').allInnerTexts()).toEqual([
      'My payments',
      'My webhooks',
      'API',
    ]);
    const metadata = { shop: 'north' };
    const paymentId = idOf(await world.service.create({ captureNow: true, metadata }));
    await page.click(`a:has-text("${paymentId}")`);
    await page.waitForSelector('li:has-text("SALE")');
    await page.waitForSelector('li:has-text("shop: north")');
    await look(opened, 'merchant');
    const other = await world.visit(`/console/merchant/${declined}`, merchant);
    await other.page.waitForSelector('li.failed:has-text("advice: retry later")');
  });

  testOfLongRun(
    'where there is no payment yet, the page says so and shows no empty table',
    async () => {
      const newcomer = await world.tokenOf('newcomer', 'm_new', 'payments:read audit:read');
      const says = async (path: string): Promise<[string, number]> => {
        const { page } = await world.visit(path, newcomer);
        const said = page.locator('main p[role=status]:has-text("no payment")');
        return [await said.innerText(), await page.locator('table').count()];
      };
      expect(await says('/console/merchant')).toEqual([
        'There is no payment yet. One appears here by itself when the API has made it.',
        0,
      ]);
      expect(await says('/console/find')).toEqual(['There is no payment yet.', 0]);
      expect(await says('/console/find?q=none')).toEqual(['No payment matches.', 0]);
    },
  );

  testOfLongRun('a token without scopes, and with its merchant in another claim', async () => {
    const merchant = await signToken({ client_id: 'm_test', sub: 'shop' });
    const { page } = await world.visit('/console', merchant);
    await page.waitForSelector('h1:has-text("My payments")');
    expect(await page.locator('nav a').allInnerTexts()).toEqual([
      'My payments',
      'My webhooks',
      'API',
    ]);
    expect(await page.locator('.reader').innerText()).toMatch(/^shop · m_test, until /);
  });

  testOfLongRun('a merchant sees what became of its webhooks, and sends one again', async () => {
    await using receiver = await startReceiver();
    const merchant = await world.tokenOf('hooks', 'm_test', 'payments:read webhooks:write');
    const endpoint = { url: receiver.url };
    const made = await world.service.ask('POST', '/api/v1/webhook-endpoints', endpoint, {
      token: merchant,
    });
    expect(made.status).toBe(201);
    await world.service.create({ captureNow: true });
    const opened = await world.visit('/console/webhooks', merchant);
    const { page } = opened;
    await page.click('summary:has-text("Attempts")');
    const row = page.locator('tr', { hasText: 'payment.captured' }).first();
    await row.getByText('✓ accepted').waitFor();
    await row.getByRole('button', { name: 'Send again' }).click();
    await row.getByText('Sent again.').waitFor();
    await until('the message came twice, with one id', () => receiver.received.length >= 2);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    await page.click('text=Send a test message');
    await page.locator('tr', { hasText: 'webhook.test' }).getByText('✓ accepted').waitFor();
    await look(opened, 'webhooks');
    const operator = await world.visit('/console/operate/webhooks', await world.tokenOf('ann'));
    await operator.page.waitForSelector(`text=${endpoint.url}`);
  });

  testOfLongRun(
    'events arrive while the page is open, and wait while the reader scrolls',
    async () => {
      const opened = await world.visit('/console/live', await world.tokenOf('ann'));
      const { page } = opened;
      await page.waitForSelector('text=Connected.');
      const paymentId = idOf(await world.service.create());
      await page.waitForSelector(`.row a:has-text("${paymentId}")`);
      await look(opened, 'live');
      await page.click('button:has-text("Pause")');
      const later = idOf(await world.service.create());
      await page.waitForSelector('button:has-text("Go on (2 new)")');
      expect(await page.locator(`.row a:has-text("${later}")`).count()).toBe(0);
      await page.click('button:has-text("Go on")');
      await page.waitForSelector(`.row a:has-text("${later}")`);
    },
  );

  testOfLongRun('the whole log is verified with what the command line says', async () => {
    const opened = await world.visit('/console/verify', await world.tokenOf('ann'));
    await opened.page.click('main button:has-text("Verify")');
    const finding = opened.page.locator('.finding.good');
    await finding.waitFor();
    expect(await finding.innerText()).toMatch(/^✓ intact: \d+ events, up to #\d+$/);
    await look(opened, 'verify');
  });

  testOfLongRun(
    'an operator sees parked payments, read models, reconciliation and settings',
    async () => {
      const opened = await world.visit('/console/operate/parked', await world.tokenOf('ann'));
      const { page } = opened;
      await page.waitForSelector('text=No payment is parked');
      await page.click('a:has-text("Read models")');
      page.on('dialog', (dialog) => dialog.accept());
      await page.click('text=Rebuild the read models');
      await page.waitForSelector('text=the old read models were the same');
      await page.click('a:has-text("Reconcile")');
      await page.click('main button:has-text("Reconcile")');
      await page.waitForSelector('.finding');
      await page.click('a:has-text("Settings")');
      await page.waitForSelector('th:has-text("JWT_SECRET")');
      expect(await page.locator('main').innerText()).not.toContain(SECRET);
      await look(opened, 'settings');
    },
  );

  testOfLongRun('a token without the right, and one that has expired, are told so', async () => {
    const merchant = await world.tokenOf('shop', 'm_test', 'payments:read');
    const { page } = await world.visit(`/console/payments/${refunded}`, merchant, {});
    await page.waitForSelector('[role=alert]:has-text("FORBIDDEN")');
    const old = await signToken({ merchant_id: '*', sub: 'ann', scope: OPERATOR, exp: 1_000 });
    const expired = await world.visit('/console/operate/settings', old, {});
    await expired.page.waitForSelector('[role=alert]:has-text("Paste a new token")');
    for (const refused of [page, expired.page]) await refused.context().close();
    world.visits.splice(-2);
  });

  test('no page fetched anything from elsewhere, broke its policy or threw', () => {
    expect(
      world.visits.flatMap(({ requests }) => requests.filter((a) => !a.startsWith('/'))),
    ).toEqual([]);
    expect(world.visits.flatMap(({ complaints }) => complaints)).toEqual([]);
  });
});
