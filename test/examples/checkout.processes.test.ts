/**
 * examples/checkout in a browser: an order is charged once at most, and the shopper is told what to do.
 * With TEST_PICTURES set the picture of a 3-D Secure payment in the README is made anew.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { endpointKey, secretTextOf, signedHeaders } from '../../webhooks/signer.ts';
import { seriousViolations } from '../support/accessibility.ts';
import { launchBrowser, noBrowser, openPage } from '../support/browser.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { freePort } from '../support/free-port.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { type InProcess, openInProcess, token } from '../support/service-in-process.ts';
import { NODE, ROOT } from '../support/service-processes.ts';
import { until } from '../support/until.ts';

type Shop = { url: string; said(): string; stop(): Promise<unknown> };

const runShop = async (service: string, more: Record<string, string> = {}) => {
  const env = {
    PAYMENTS_URL: service,
    PAYMENTS_TOKEN: await token('m_test'),
    PORT: String(await freePort()),
    ...more,
  };
  const child = spawn(NODE, [join(ROOT, 'examples/checkout/server.ts')], { env });
  let said = '';
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk: Buffer) => {
      said += chunk;
    });
  return { child, url: `http://127.0.0.1:${env.PORT}`, said: () => said };
};

const startShop = async (service: string, more: Record<string, string> = {}): Promise<Shop> => {
  const { child, url, said } = await runShop(service, more);
  await until('the checkout is there', () => said().includes('the checkout is at'));
  const exited = once(child, 'exit');
  const stop = () => {
    child.kill();
    return exited;
  };
  return { url, said, stop };
};

/** What the page's form sends. */
const send = (address: string, form: Record<string, string>, origin = new URL(address).origin) => {
  const body = new URLSearchParams({ after: '', holder: 'Ada Lovelace', ...form });
  return fetch(address, { method: 'POST', headers: { origin }, body, redirect: 'manual' });
};

const closedAfter = async (port: number, request: string): Promise<void> => {
  const socket = connect(port, '127.0.0.1');
  socket.end(request);
  await once(socket.resume(), 'close');
};

/** An order of the shop, without a browser. */
const ordered = async (shop: Shop): Promise<string> => {
  const { headers } = await fetch(shop.url, { redirect: 'manual' });
  return `${shop.url}${headers.get('location')}`;
};

describe('the checkout under attack, and without its service', () => {
  const secret = endpointKey('a secret of the tests', 'we_1', 1);
  let service: InProcess;
  let serviceUrl: string;
  let shop: Shop;
  beforeAll(async () => {
    service = await openInProcess();
    serviceUrl = await service.listen();
    shop = await startShop(serviceUrl, { WEBHOOK_SECRET: secretTextOf(secret) });
  });
  afterAll(async () => {
    await shop?.stop();
    await service?.[Symbol.asyncDispose]();
  });

  test('addresses that are none, and a body that is never sent, end no shop', async () => {
    const port = Number(new URL(shop.url).port);
    for (const target of ['//', 'http://', 'http://[', '/%', '/?order=%ff', '/style.css?%'])
      await closedAfter(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    await closedAfter(port, 'POST /hook HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc');
    expect((await fetch(await ordered(shop))).status).toBe(200);
  });

  test('a form of another site, and an order that the shop does not know, pay nothing', async () => {
    const order = await ordered(shop);
    const foreign = await send(order, { token: 'tok_visa' }, 'https://other.example');
    const unknown = await send(`${shop.url}/?order=order-12345678`, { token: 'tok_visa' });
    expect([foreign.status, unknown.status]).toEqual([403, 404]);
    expect(await (await fetch(order)).text()).toContain('data-status="NEW"');
  });

  test('no page is shown in a frame of another site, and it loads only what it names', async () => {
    const { headers } = await fetch(await ordered(shop));
    const policy = headers.get('content-security-policy') ?? '';
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"])
      expect(policy).toContain(part);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('what was captured under the number of an order is not paid where it is another amount', async () => {
    const order = await ordered(shop);
    const merchantReference = new URL(order).searchParams.get('order');
    const { status } = await service.create({ amount: 100, captureNow: true, merchantReference });
    expect(status).toBe(200);
    expect(await (await fetch(order)).text()).toContain('data-status="OTHER_AMOUNT"');
  });

  test('a token that the provider does not know charged nothing, and the page says so', async () => {
    const response = await send(await ordered(shop), { token: 'tok_of_another_shop' });
    expect(await response.text()).toContain('data-status="REFUSED"');
  });

  test('goods are sent once, on a signed webhook of the whole amount', async () => {
    const order = new URL(await ordered(shop)).searchParams.get('order');
    const payment = { paymentId: 'pay_1', merchantReference: order, currency: 'USD' };
    const tell = (amount: number, key = secret) => {
      const data = { payment: { ...payment, amount, status: 'CAPTURED' } };
      const body = JSON.stringify({ type: 'payment.captured', data });
      const headers = signedHeaders([key], 'evt_1', Date.now(), body);
      return fetch(`${shop.url}/hook`, { method: 'POST', headers, body });
    };
    const forged = await tell(1900, endpointKey('another secret', 'we_1', 1));
    const sent = [await tell(100), await tell(1900), await tell(1900)];
    expect([forged, ...sent].map(({ status }) => status)).toEqual([401, 204, 204, 204]);
    const line = `${order} is paid: send the goods\n`;
    await until('the goods are sent', () => shop.said().includes(line));
    expect(shop.said().split(line)).toHaveLength(2);
  });

  test('after five declined cards the shop takes no more of that shopper', async () => {
    const last = async (order: string): Promise<string> =>
      /name="after" value="(\w*)"/.exec(await (await fetch(order)).text())?.[1] ?? '';
    const one = await ordered(shop);
    for (let tries = 1; tries <= 5; tries += 1)
      await send(one, { token: 'tok_stolen_card', after: await last(one) });
    const again = await send(await ordered(shop), { token: 'tok_stolen_card' });
    expect(await again.text()).toContain('data-status="TOO_MANY"');
  });

  test('without a good token it does not start, and says why', async () => {
    const { child, said } = await runShop(serviceUrl, { PAYMENTS_TOKEN: 'none' });
    const [code] = await once(child, 'exit');
    expect(code).toBe(1);
    expect(said()).toMatch(/^PAYMENTS_TOKEN: the payment service says 401: .+\n$/);
  });
});

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
    '3-D Secure, left before its end: the page leads back to the bank, and takes no second payment',
    async () => {
      const page = await order();
      const back = page.url();
      await pay(page, 'tok_authenticate');
      await page.getByRole('button', { name: 'Authenticate' }).waitFor();
      await page.goto(back);
      await page.getByRole('link', { name: 'Continue at your bank' }).waitFor();
      expect(await formIsShown(page)).toBe(false);
      await send(back, { token: 'tok_visa' });
      expect(await statusesOf(orderOf(page))).toEqual(['PENDING']);
      await page.getByRole('link', { name: 'Continue at your bank' }).click();
      await page.getByRole('button', { name: 'Authenticate' }).click();
      await says(page, 'Paid. Thank you!');
    },
  );

  test('a double click is one payment, and so are two forms sent at once', async () => {
    const page = await order();
    await page.getByRole('button').dblclick();
    await says(page, 'Paid. Thank you!');
    expect(await statusesOf(orderOf(page))).toEqual(['CAPTURED']);
    const other = await order();
    const both = () => send(other.url(), { token: 'tok_visa' });
    await Promise.all([both(), both()]);
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
    await says(page, 'We wait for the outcome of your payment.');
    const again = await send(address, { token: 'tok_visa' });
    const { pathname, search } = new URL(address);
    expect([again.status, again.headers.get('location')]).toEqual([303, `${pathname}${search}`]);
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
