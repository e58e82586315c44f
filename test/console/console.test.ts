/**
 * The console in a real browser, on a service with payments of every kind: the first story of
 * docs/console.md, told to the end, and its readers. test/console/console-keyboard.long.test.ts tells all stories.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { look } from '../support/accessibility.ts';
import { describeConsole } from '../support/console-world.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { idOf, signToken } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const OPERATOR = 'audit:read ops:admin ops:resolve';

describeConsole('the console', (world) => {
  const cli = async (...args: string[]): Promise<string> => (await world.cli(...args)).stdout;

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
    const { page } = await world.visit('/console/find', await world.tokenOf('ann'));
    expect(page.url()).toBe(`${world.url}/console/find`);
    expect(await page.evaluate(STORED)).toBe('[{},{},""]');
    await page.keyboard.type('9995');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=9995/);
    const link = page.locator('tbody a.id');
    await link.waitFor();
    expect(await link.allInnerTexts()).toEqual([declined]);
    await look(page, 'find');
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

  test('story: an auditor sees that texts are sealed, and once they are erased by whom, when and why', async () => {
    const id = idOf(await world.service.create({ captureNow: true }));
    const { page } = await world.visit(`/console/payments/${id}`, await world.tokenOf('ann'));
    await page.waitForSelector('.then dd:text-is("sealed")');
    expect(await page.locator('#erased').count()).toBe(0);
    const order = { reason: 'COURT_ORDER', ticket: 'CASE-4711' };
    for (const person of ['jane', 'joe']) {
      const token = await world.tokenOf(person, '*', 'ops:erase');
      await world.service.ask('POST', `/ops/v1/payments/${id}/erase`, order, { token });
    }
    await page.click('text=Read again');
    const facts = page.locator('section[aria-labelledby=erased] dl');
    await facts.waitFor();
    expect((await facts.innerText()).replace(/\s+/g, ' ')).toMatch(
      /\(1 key\) When 20.* Requested by jane Erased by joe Reason COURT_ORDER Ticket CASE-4711 Event r4/,
    );
    await page.waitForSelector('.then dd:text-is("erased")');
    await look(page, 'erased');
  });

  testOfLongRun('a merchant sees its metadata, and what to do about a decline', async () => {
    const merchant = await world.tokenOf('shop', 'm_test', 'payments:read');
    const paymentId = idOf(await world.service.create({ metadata: { shop: 'north' } }));
    const { page } = await world.visit(`/console/merchant/${paymentId}`, merchant);
    await page.waitForSelector('li:has-text("shop: north")');
    await world.visit(`/console/merchant/${declined}`, merchant);
    await page.waitForSelector('li.failed:has-text("advice: retry later")');
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
    const { page } = await world.visit('/console/webhooks', merchant);
    await page.click('summary:has-text("Attempts")');
    const row = page.locator('tr', { hasText: 'payment.captured' }).first();
    await row.getByText('✓ accepted').waitFor();
    await row.getByRole('button', { name: 'Send again' }).click();
    await row.getByText('Sent again.').waitFor();
    await until('the message came twice, with one id', () => receiver.received.length >= 2);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
    await page.click('text=Send a test message');
    await page.locator('tr', { hasText: 'webhook.test' }).getByText('✓ accepted').waitFor();
    await look(page, 'webhooks');
    const operator = await world.visit('/console/operate/webhooks', await world.tokenOf('ann'));
    await operator.page.waitForSelector(`text=${endpoint.url}`);
  });

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
