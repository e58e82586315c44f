/**
 * examples/checkout in a browser: an order is charged once at most, and the shopper is told what to do.
 * With TEST_PICTURES set the picture of a 3-D Secure payment in the README is made anew.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { seriousViolations } from '../support/accessibility.ts';
import { launchBrowser, noBrowser, openPage } from '../support/browser.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { freePort } from '../support/free-port.ts';
import { type InProcess, openInProcess, token } from '../support/in-process.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { NODE, ROOT } from '../support/service.ts';

type Shop = { url: string; stop(): Promise<unknown> };

const startShop = async (service: string, more: Record<string, string> = {}): Promise<Shop> => {
  const env = {
    ...more,
    PAYMENTS_URL: service,
    PAYMENTS_TOKEN: await token('m_test'),
    PORT: String(await freePort()),
  };
  const child = spawn(NODE, [join(ROOT, 'examples/checkout/server.ts')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const exited = once(child, 'exit');
  return {
    url: `http://127.0.0.1:${env.PORT}`,
    stop: () => {
      child.kill();
      return exited;
    },
  };
};

const missing = noBrowser();
describeUnless(missing, 'the checkout page', () => {
  let service: InProcess;
  let serviceUrl: string;
  let shop: Shop;
  let browser: Browser;
  beforeAll(async () => {
    service = await openInProcess();
    serviceUrl = await service.listen();
    shop = await startShop(serviceUrl);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.stop();
    await service?.[Symbol.asyncDispose]();
  });

  const order = async (): Promise<Page> => {
    const { page } = await openPage(browser, shop.url, { viewport: { width: 320, height: 640 } });
    await page.goto(shop.url);
    return page;
  };
  const pay = async (page: Page, card: string, once = async () => {}) => {
    await page.getByLabel('Card', { exact: true }).selectOption(card);
    await once();
    const button = page.getByRole('button', { name: 'Pay 19.00 USD' });
    await button.click({ noWaitAfter: true });
  };
  /** What the shopper saw, side by side. */
  const draw = async (seen: readonly Buffer[]): Promise<void> => {
    const { page } = await openPage(browser, shop.url, { viewport: { width: 1024, height: 512 } });
    const images = seen.map((one) => `<img src="data:image/png;base64,${one.toString('base64')}">`);
    await page.setContent(
      `<style>body{margin:0;padding:12px;display:flex;justify-content:space-between;background:#666}
      img{width:320px;height:488px;object-fit:cover;object-position:top}</style>${images.join('')}`,
    );
    await page.screenshot({ path: join(ROOT, 'docs/pictures/checkout-3ds.png') });
  };
  const says = (page: Page, words: string) => page.getByText(words).waitFor({ state: 'visible' });
  const formIsShown = (page: Page) => page.getByRole('button').isVisible();
  const orderOf = (page: Page) => new URL(page.url()).searchParams.get('order') as string;
  /** Each payment of an order, the oldest first. */
  const paymentsOf = async (name: string): Promise<{ status: string; metadata: object }[]> => {
    const { json } = await service.ask('GET', `/api/v1/payments?merchantReference=${name}`);
    return (json as unknown as { payments: { status: string; metadata: object }[] }).payments;
  };
  const statusesOf = async (name: string) => (await paymentsOf(name)).map(({ status }) => status);

  test('a payment: paid, under the number of the order', async () => {
    const page = await order();
    await pay(page, 'tok_visa');
    await says(page, 'Paid. Thank you!');
    expect(await formIsShown(page)).toBe(false);
    const metadata = { order: orderOf(page) };
    expect(await paymentsOf(orderOf(page))).toMatchObject([{ status: 'CAPTURED', metadata }]);
  });

  testOfLongRun('a decline: its advice, and another card pays the same order', async () => {
    const page = await order();
    await pay(page, 'tok_insufficient_funds');
    await says(page, 'Please try again later, or with another card.');
    expect(await page.getByText('Please use another card.').isVisible()).toBe(false);
    await pay(page, 'tok_visa');
    await says(page, 'Paid. Thank you!');
    expect((await statusesOf(orderOf(page))).toSorted()).toEqual(['CAPTURED', 'FAILED']);
  });

  const BANK = [
    ['Authenticate', 'Paid. Thank you!', 'CAPTURED'],
    ['Fail', 'Your bank could not confirm that it is you.', 'FAILED'],
  ] as const;
  testOfLongRun.each(BANK)(
    '3-D Secure, %s: the shopper is led back and reads the outcome',
    async (press, words, status) => {
      const page = await order();
      const name = orderOf(page);
      const isDrawn = process.env.TEST_PICTURES !== undefined && status === 'CAPTURED';
      const seen: Buffer[] = [];
      const look = async () => void (isDrawn && seen.push(await page.screenshot()));
      await pay(page, 'tok_authenticate', look);
      await page.getByRole('button', { name: press }).waitFor();
      await look();
      await page.getByRole('button', { name: press }).click();
      await says(page, words);
      await look();
      if (isDrawn) await draw(seen);
      expect([orderOf(page), await statusesOf(name)]).toEqual([name, [status]]);
    },
  );

  testOfLongRun(
    '3-D Secure, left before its end: the page waits, takes no second payment, and shows the outcome',
    async () => {
      const page = await order();
      const back = page.url();
      await pay(page, 'tok_authenticate');
      await page.getByRole('button', { name: 'Authenticate' }).waitFor();
      const bank = page.url();
      await page.goto(back);
      await says(page, 'We wait for your bank to confirm the payment.');
      expect(await formIsShown(page)).toBe(false);
      const form = new URLSearchParams({ after: '', token: 'tok_visa', holder: 'Ada Lovelace' });
      await fetch(back, { method: 'POST', body: form });
      expect(await statusesOf(orderOf(page))).toEqual(['PENDING']);
      await fetch(`${bank}/authenticate`, { method: 'POST', redirect: 'manual' });
      await says(page, 'Paid. Thank you!');
    },
  );

  test('a double click is one payment, and so are two forms sent at once', async () => {
    const page = await order();
    await page.getByRole('button').dblclick();
    await says(page, 'Paid. Thank you!');
    expect(await statusesOf(orderOf(page))).toEqual(['CAPTURED']);
    const other = await order();
    const body = new URLSearchParams({ after: '', token: 'tok_visa', holder: 'Ada Lovelace' });
    const send = () => fetch(other.url(), { method: 'POST', body });
    await Promise.all([send(), send()]);
    await other.reload();
    await says(other, 'Paid. Thank you!');
    expect(await statusesOf(orderOf(other))).toEqual(['CAPTURED']);
  });

  test('a reload while the provider works, and the old form sent again: the page waits, one payment', async () => {
    const page = await order();
    const address = page.url();
    const held = service.faults.holdNext();
    await pay(page, 'tok_visa');
    await held.begun;
    await page.goto(address);
    await says(page, 'We wait for your bank to confirm the payment.');
    const form = new URLSearchParams({ after: '', token: 'tok_visa', holder: 'Ada Lovelace' });
    const again = await fetch(address, { method: 'POST', body: form, redirect: 'manual' });
    expect([again.status, again.headers.get('location')]).toEqual([303, address]);
    held.release();
    await says(page, 'Paid. Thank you!');
    expect(await statusesOf(orderOf(page))).toEqual(['CAPTURED']);
  });

  testOfLongRun('while the form is sent: the page says so, and has no button', async () => {
    const page = await order();
    await page.evaluate('stripe.createConfirmationToken = () => new Promise(() => {})');
    await pay(page, 'tok_visa');
    await says(page, 'Paying…');
    expect(await formIsShown(page)).toBe(false);
  });

  testOfLongRun(
    'with a publishable key the fields are those of Stripe.js, and its token is what is sent',
    async () => {
      const ofStripe = await startShop(serviceUrl, {
        STRIPE_PUBLISHABLE_KEY: 'pk_test_of_the_shop',
      });
      try {
        const { page } = await openPage(browser, ofStripe.url);
        const library = await fetch(`${serviceUrl}/simulator/browser.js`);
        const keepsKey =
          'const { Stripe } = window; window.Stripe = (key) => Stripe((window.key = key));';
        const body = `${await library.text()}{ ${keepsKey} }`;
        await page.route('https://js.stripe.com/v3/', (route) =>
          route.fulfill({ contentType: 'text/javascript', body }),
        );
        await page.goto(ofStripe.url);
        await pay(page, 'tok_visa');
        await says(page, 'Paid. Thank you!');
        expect(await page.evaluate('key')).toBe('pk_test_of_the_shop');
      } finally {
        await ofStripe.stop();
      }
    },
  );

  testOfLongRun('at 320 px nothing is cut off, and axe finds nothing serious', async () => {
    const page = await order();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
    expect(await seriousViolations(page)).toEqual([]);
  });
});
