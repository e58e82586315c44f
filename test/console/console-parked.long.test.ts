/**
 * The page of parked payments in a real browser, over the projector's own routes: what the projector
 * and the relay have parked, and each number as the way to what it was made from.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import type { Browser } from 'playwright-core';
import { registerConsole } from '../../console/routes.ts';
import { type Projector, startProjector } from '../../projector/compose.ts';
import { registerProjectorApi } from '../../projector/routes.ts';
import { streamOf } from '../../shared/payment/events.ts';
import type { ReadModels } from '../../shared/read-models/port.ts';
import { type Relay, startRelay } from '../../topics/relay.ts';
import { look, seriousViolations } from '../support/accessibility.ts';
import { launchBrowser, noBrowser, openPage, type Visit } from '../support/browser.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { appendLives } from '../support/many-payments.ts';
import { type MemoryEventStore, memoryEventStore } from '../support/memory-event-store.ts';
import { memoryDocument, memoryFeed } from '../support/memory-feed.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import { openApp, signToken } from '../support/service-in-process.ts';
import { silent, silentLog } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const missing = noBrowser();
describeUnless(missing, 'parked payments', () => {
  const folder = temporaryFolder();
  let store: MemoryEventStore;
  let readModels: ReadModels;
  let projector: Projector;
  let relay: Relay;
  let app: FastifyInstance;
  let browser: Browser;
  let opened: Visit;
  let url: string;

  beforeAll(async () => {
    store = memoryEventStore();
    for (const id of ['pay_1', 'pay_2', 'pay_3']) {
      await appendLives(store, [id]);
      store.damage(streamOf(id), 3, 'of a later version');
    }
    readModels = readModelsIn(folder.path, 'read models.db');
    projector = await startProjector({ store, readModels, logger: silentLog });
    const parts = { store, feed: memoryFeed(), checkpoint: memoryDocument(), logger: silent };
    relay = startRelay({ ...parts, mayRun: () => true, backOff: { minMs: 1, maxMs: 8 } });
    const made = await openApp({ RATE_LIMIT_PER_SECOND: '0' });
    app = made.app;
    registerProjectorApi(app, made.authHooks, {
      ...{ store, relay, projector, readModels, topicPrefix: 'payments' },
      verification: { status: () => ({ lastRunMs: 0, lastOkMs: 0 }), hasNamed: async () => false },
      sealer: { last: () => undefined },
    });
    registerConsole(app, made.config.tokens.merchantClaims);
    url = await app.listen({ host: '127.0.0.1', port: 0 });
    await until('all are parked', () => projector.status().parked + relay.status().parked === 6);
    browser = await launchBrowser();
    opened = await openPage(browser, url);
    const token = await signToken({ merchant_id: '*', sub: 'ann', scope: 'ops:admin' });
    await opened.page.goto(`${url}/console/operate/parked#token=${token}`);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
    await relay?.stop();
    await projector?.stop();
    await readModels?.close();
    folder.remove();
  });

  test('what waits at the relay is sent again: still parked with its reason, then sent', async () => {
    const { page } = opened;
    const part = page.locator('#relay-parked ~ ul > li');
    await part.nth(2).waitFor();
    const card = part.filter({ hasText: 'pay_1' });
    expect(await card.innerText()).toMatch(
      /The messages of revision 3 to 5 wait since .*of a later/,
    );
    const places = await card
      .locator('p a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    expect(places).toEqual([3, 5].map((n) => `/console/payments/pay_1?revision=${n}`));
    await card.getByRole('button', { name: 'Send again' }).click();
    await card.getByText('Still parked at revision 3: of a later version').waitFor();
    await page.evaluate("document.querySelector('#relay-parked').scrollIntoView()");
    await look(page, 'parked');
    store.mend(streamOf('pay_1'));
    await card.getByRole('button', { name: 'Send again' }).click();
    await page.waitForSelector('.finding:has-text("Sent, nothing of them waits: pay_1")');
    await part.filter({ hasText: 'pay_1' }).waitFor({ state: 'detached' });
    store.mend(streamOf('pay_2'));
    await page.click('text=Send all again');
    await page.waitForSelector('[role=status]:has-text("1 sent, 1 still parked.")');
    expect(relay.status().parked).toBe(1);
  });

  test('what is parked in the read models is read again', async () => {
    const { page } = opened;
    const card = page.locator('.card', { hasText: 'pay_1' });
    await card.getByRole('button', { name: 'Read it again' }).click();
    await until('its document is whole', () => projector.status().parked === 2);
  });

  test('each count leads to what it was made from', async () => {
    const { page } = opened;
    await page.waitForSelector('a[href="#relay-parked"]:has-text("1")');
    await page.click('.figure:has-text("Sent since the start") a');
    await page.waitForSelector('details[open] #topics');
    expect(await seriousViolations(page)).toEqual([]);
  });

  test('a relay that is stopping rejects it in words, once no other has taken it for 12 s', async () => {
    const { page } = opened;
    const card = page.locator('#relay-parked ~ ul > li', { hasText: 'pay_3' });
    await card.waitFor();
    await relay.stop();
    await card.getByRole('button', { name: 'Send again' }).click();
    await card
      .getByText(
        'The service is unavailable for the moment. this projector stands by, or is stopping',
      )
      .waitFor();
    expect(opened.complaints.filter((line) => !/status of 503/.test(line))).toEqual([]);
  });
});
