/**
 * Every number on a page of the console leads to what it was made from: it is in a link that goes
 * somewhere, or it is one of those that are no made number, which stand here with the reason.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import {
  describeConsole,
  openAttempts,
  type Seeded,
  seedPayments,
} from '../support/console-world.ts';

/** What has digits and is made from nothing: where it stands, and why it needs no link. */
const NOT_MADE: readonly [selector: string, reason: string][] = [
  ['time, .at small, ol.attempts small', 'a time, or the time between two of them'],
  ['.id, code', 'a name: of a payment, a card, a merchant, a field, a hash, a setting'],
  ['pre', 'the source itself, as the service gave it'],
  ['select, input, label, .hint', 'what the reader may choose, and a limit of the page'],
  ['caption', 'counts the rows below it'],
  ['dl.facts dd', 'a field of the event, which stands whole under it'],
  ['h2', 'the revision that the address names'],
  ['section[aria-labelledby=provider] td', "the provider's own entry; its amount is a link"],
  ['span.attempts', 'how often recovery has asked, which the raw JSON below has'],
  ['[aria-label=Topics] :is(th, td)', 'the name of a topic, and how it is set up'],
  ['ol.attempts .money, ul.attempts .money', 'a transaction: what the sums are made of'],
  ['[aria-label=Attempts] td:nth-child(5)', 'a measurement, which the attempt itself is'],
  ['[aria-live] p:not(.finding), .because li', 'a sentence of the service; its event is a link'],
];

const NUMBERS = `(() => {
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!/[0-9]/.test(node.data) || parent.closest(NOT_MADE) !== null) continue;
    const link = parent.closest('a, button, summary');
    const address = link?.getAttribute('href');
    const leads = link !== null && (address?.startsWith('#') === true
      ? document.getElementById(address.slice(1)) !== null : address !== '');
    if (!leads) found.push(node.data.trim() + ' in ' + parent.outerHTML.slice(0, 80));
  }
  return found;
})()`.replace('NOT_MADE', JSON.stringify(NOT_MADE.map(([selector]) => selector).join(', ')));

const expectAllLead = async (page: Page): Promise<void> => {
  await page.waitForSelector('.waiting', { state: 'detached' });
  expect(await page.evaluate(NUMBERS)).toEqual([]);
};

describeConsole('the numbers of the console', (world) => {
  let seeded: Seeded;
  beforeAll(async () => {
    seeded = await seedPayments(world);
  });
  afterAll(async () => seeded?.[Symbol.asyncDispose]());

  const asOperator = async (path: string) =>
    (await world.visit(`/console/${path}`, await world.tokenOf('ann'))).page;
  const asMerchant = async (path: string) => {
    const token = await world.tokenOf('shop', 'm_test', 'payments:read webhooks:write');
    return (await world.visit(`/console/${path}`, token)).page;
  };

  test('live: lag, unresolved, verification, seal, and the amounts of the events', async () => {
    const page = await asOperator('live');
    await page.waitForSelector('text=Connected.');
    await world.service.create();
    await page.waitForSelector('.row:nth-child(2) .amount a');
    await expectAllLead(page);
    await page.locator('.row .amount a').first().click();
    await page.waitForURL(/payments\/pay_.*revision=1$/);
  });

  test('find: an amount leads to the event that asked for it', async () => {
    const page = await asOperator('find');
    await page.waitForSelector('text=That is all of them.');
    await expectAllLead(page);
    await page.locator('tr', { hasText: seeded.declined }).locator('td:nth-child(3) a').click();
    await page.waitForURL(new RegExp(`${seeded.declined}.revision=0$`));
  });

  const KINDS = ['refunded', 'declined', 'disputed', 'byHand', 'requested'] as const;
  test.each(KINDS)('a payment that is %s, now and at its start', async (kind) => {
    for (const query of ['', '?revision=1']) {
      const page = await asOperator(`payments/${seeded[kind]}${query}`);
      await page.waitForSelector('[aria-label="Operations at the provider"]');
      await page.waitForSelector('text=What GET answered then');
      await page.waitForSelector('text=Verified:');
      await page.click('button:has-text("Explain")');
      await page.waitForSelector('[aria-live] .finding');
      await expectAllLead(page);
    }
  });

  test('a sum, then and now, leads to the event that made it so', async () => {
    const page = await asOperator(`payments/${seeded.refunded}?revision=2`);
    const row = page.locator('[aria-label=Differences] tr', { hasText: 'refundedAmount' });
    await row.waitFor();
    const [then, now] = await row
      .locator('td a')
      .evaluateAll((links) => links.map((link) => String(link)));
    expect([then, now].map((address) => address?.split('revision=')[1])).toEqual(['0', '4']);
  });

  test('a verification: its figures open the result that they are read from', async () => {
    const page = await asOperator('verify');
    await page.click('main button:has-text("Verify")');
    await page.waitForSelector('.finding');
    await expectAllLead(page);
    await page.click('dt:has-text("Events after the last seal") + dd a');
    await page.waitForSelector('details[open] #result');
  });

  test.each(['unresolved', 'parked', 'rebuild', 'reconcile', 'webhooks'])(
    'operate: %s',
    async (section) => {
      const page = await asOperator(`operate/${section}`);
      if (section === 'reconcile') await page.click('main button:has-text("Reconcile")');
      if (section === 'rebuild') {
        page.once('dialog', (dialog) => dialog.accept());
        await page.click('text=Rebuild the read models');
      }
      if (['reconcile', 'rebuild'].includes(section)) await page.waitForSelector('.finding');
      if (section === 'webhooks') await openAttempts(page);
      await expectAllLead(page);
    },
  );

  test('a merchant: sums lead to transactions, and attempts to their payment', async () => {
    await expectAllLead(await asMerchant('merchant'));
    for (const id of [seeded.refunded, seeded.declined, seeded.disputed]) {
      await expectAllLead(await asMerchant(`merchant/${id}`));
    }
    const page = await asMerchant(`merchant/${seeded.refunded}`);
    await page.click('dt:has-text("Refunded") + dd a');
    expect(await page.locator(':target').innerText()).toMatch(/REFUND 5.00 USD/);
    const webhooks = await asMerchant('webhooks');
    await openAttempts(webhooks);
    await expectAllLead(webhooks);
  });
});
