/**
 * The stories of docs/console.md by keyboard alone: no address is opened after the first, nothing is
 * clicked, and whatever has the focus is seen. With TEST_PICTURES the pictures of that page are taken.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { look } from '../support/accessibility.ts';
import { describeConsole, type Seeded, seedPayments } from '../support/console-world.ts';
import { idOf } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

type Focused = {
  /** What a screen reader would call it: its label, else its text. */
  name: string;
  tag: string;
  /** The text of the row or card that it is in. */
  around: string;
};

const STOPS_MAX = 120;

const FOCUSED = `(() => {
  const focused = document.activeElement;
  const before = window.focusedBefore;
  window.focusedBefore = focused;
  const text = (element) => (element?.innerText ?? '').replace(/\\s+/g, ' ').trim();
  const { outlineStyle, outlineWidth } = getComputedStyle(focused);
  const box = focused.getBoundingClientRect();
  const isOnward = before?.isConnected !== true || [before, document.body].includes(focused) ||
    (before.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
  return {
    name: focused === document.body ? '' :
      focused.getAttribute('aria-label') ?? (text(focused.labels?.[0]) || text(focused)),
    tag: focused.tagName.toLowerCase(),
    around: text(focused.closest('tr, .card, .row')),
    isSeen: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2,
    isInSight: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    isOnward,
  };
})()`;

type Look = Focused & { isSeen: boolean; isInSight: boolean; isOnward: boolean };

type Keyboard = ReturnType<typeof keyboardOf>;

const keyboardOf = (page: Page) => {
  const look = async (): Promise<Look> => (await page.evaluate(FOCUSED)) as Look;
  const expectSeen = (looked: Look, key: string): void => {
    const { name, tag, isSeen, isInSight } = looked;
    if (tag === 'body') return;
    expect({ key, tag, name, isSeen, isInSight }).toMatchObject({ isSeen: true, isInSight: true });
  };
  const press = async (key: string): Promise<Look> => {
    await page.keyboard.press(key);
    const looked = await look();
    expectSeen(looked, key);
    return looked;
  };
  return {
    focused: look,
    /** Presses a key, and expects the focus to be seen where it then is. */
    press,
    type: async (text: string) => page.keyboard.insertText(text),
    /** Tab, or with `isBack` Shift+Tab, until what has the focus is called so, in a row or card with `around`. */
    tabTo: async (name: RegExp, { around = '', isBack = false } = {}) => {
      const passed: string[] = [];
      for (let stop = 0; stop < STOPS_MAX; stop += 1) {
        const looked = await press(isBack ? 'Shift+Tab' : 'Tab');
        if (name.test(looked.name) && looked.around.includes(around)) return looked;
        passed.push(`${looked.tag} ${looked.name.slice(0, 40)}`);
        // The browser's own surroundings lie between the end of a page and its start.
        const isOut = looked.tag === 'body' || passed.length === 1 || isBack;
        if (!isOut) expect([passed.slice(-2), looked.isOnward]).toEqual([passed.slice(-2), true]);
        if (looked.tag === 'body' && stop > 0) break;
      }
      throw new Error(`Tab never came to ${name}; it passed ${passed.join(', ')}`);
    },
    /** Waits until the title of a page, or of a part of it, has the focus. */
    arriveAt: async (title: RegExp) => {
      const isThere = `${title}.test(document.activeElement.innerText) && /^H[12]$/.test(document.activeElement.tagName)`;
      const end = Date.now() + 10_000;
      while (!(await page.evaluate(isThere))) {
        if (Date.now() > end)
          throw new Error(`${title} has no focus: ${JSON.stringify(await look())}`);
        await page.waitForTimeout(20);
      }
      expectSeen(await look(), 'arrival');
    },
  };
};

describeConsole('the console by keyboard', (world) => {
  let seeded: Seeded;
  beforeAll(async () => {
    seeded = await seedPayments(world);
  });
  afterAll(async () => {
    expect(world.visits.flatMap(({ complaints }) => complaints)).toEqual([]);
    await seeded?.[Symbol.asyncDispose]();
  });

  /** A new page, on which a token is pasted; the page that it can read first has the focus. */
  const signIn = async (token: string, title: RegExp): Promise<[Page, Keyboard]> => {
    const { page } = await world.visit('/console', 'none', {});
    const keyboard = keyboardOf(page);
    if ((await keyboard.focused()).name !== 'Token') await keyboard.tabTo(/^Token$/);
    await keyboard.type(token);
    await keyboard.tabTo(/^Open$/);
    await keyboard.press('Enter');
    await keyboard.arriveAt(title);
    return [page, keyboard];
  };
  const asOperator = async (subject = 'ann') => signIn(await world.tokenOf(subject), /^Live$/);
  const goTo = async (keyboard: Keyboard, page: string): Promise<void> => {
    await keyboard.tabTo(new RegExp(`^${page}$`), { isBack: true });
    await keyboard.press('Enter');
  };
  const findPayment = async (page: Page, keyboard: Keyboard, q: string, id: string) => {
    await goTo(keyboard, 'Find');
    await until('the search has the focus', async () =>
      (await keyboard.focused()).name.startsWith('Payment id'),
    );
    await keyboard.type(q);
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=/);
    await page.waitForSelector('text=That is all of them.');
    await keyboard.tabTo(new RegExp(`^${id}$`));
    await keyboard.press('Enter');
    await keyboard.arriveAt(new RegExp(id));
  };

  test('story: why a refund was refused, and the event that forbids it', async () => {
    const [page, keyboard] = await asOperator();
    await findPayment(page, keyboard, seeded.disputed, seeded.disputed);
    await page.waitForSelector('h1:has-text("disputed")');
    expect(await page.locator('h1').innerText()).toMatch(/CAPTURED ! disputed$/);
    await keyboard.tabTo(/^Amount, empty for all of it/);
    await keyboard.type('5.00');
    await page.keyboard.press('Enter');
    await page.waitForSelector('[aria-live] .finding.bad');
    await look(page, 'explain');
    await keyboard.tabTo(/^r3 PaymentDisputed$/);
    await keyboard.press('Enter');
    await keyboard.arriveAt(/^At revision 3$/);
    expect(page.url()).toContain('?revision=3');
  });

  test('story: what was true at a moment, by the keys of the list, of the page and of the slider', async () => {
    const [page, keyboard] = await asOperator();
    await findPayment(page, keyboard, seeded.refunded, seeded.refunded);
    const row = await keyboard.tabTo(/^r4 /);
    expect(row.name).toContain('PaymentRefunded');
    const chosen = async (key: string, revision: number): Promise<void> => {
      await page.keyboard.press(key);
      await page.waitForURL(new RegExp(`revision=${revision}$`));
      await until(`row r${revision} has the focus`, async () =>
        (await keyboard.focused()).name.startsWith(`r${revision} `),
      );
    };
    await chosen('ArrowUp', 3);
    await chosen('Home', 0);
    await chosen('ArrowDown', 1);
    await chosen('End', 4);
    await keyboard.press('Enter');
    await keyboard.arriveAt(/^At revision 4$/);
    await keyboard.press('ArrowLeft');
    await page.waitForURL(/revision=3$/);
    const slider = await keyboard.tabTo(/^Revision/);
    expect(slider.tag).toBe('input');
    await keyboard.press('ArrowLeft');
    await page.waitForURL(/revision=2$/);
    await page.waitForSelector('text=What GET answered then');
    await look(page, 'payment');
    await keyboard.tabTo(/^999999.99 USD$/);
    await keyboard.tabTo(/^The whole body$/);
    await keyboard.press('Enter');
    await page.waitForSelector('details[open] pre:has-text("capturedAmount")');
    const back = `dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', altKey: true, cancelable: true }))`;
    expect(await page.evaluate(back)).toBe(true);
  });

  test('story: two operators resolve an unknown outcome', async () => {
    const { service } = world;
    service.faults.respondsToLookUps = false;
    const [first, ann] = await asOperator('ann');
    const [second, bob] = await asOperator('bob');
    const word = async (page: Page, keyboard: Keyboard, summary: string, button: string) => {
      await goTo(keyboard, 'Operate');
      await page.waitForSelector('.card');
      await keyboard.tabTo(new RegExp(`^${summary}$`), { around: seeded.unresolved });
      await keyboard.press('Enter');
      await keyboard.tabTo(/^Outcome/);
      await keyboard.press('Home');
      await keyboard.tabTo(/^Evidence/);
      await keyboard.type('the acquirer confirmed it by phone');
      await keyboard.tabTo(new RegExp(`^${button}$`));
      await keyboard.press('Enter');
    };
    await word(first, ann, 'Resolve by hand', 'Request');
    await first.waitForSelector('text=Nothing is recorded until another operator');
    await ann.tabTo(/^Needs a person$/, { isBack: true });
    await ann.press('Enter');
    const waiting = first.locator('.card:has-text("RESOLUTION_REQUESTED")');
    const next = waiting.filter({ hasText: seeded.unresolved }).locator('code');
    expect(await next.innerText()).toBe('payments unresolved');
    await look(first, 'attention');
    await goTo(bob, 'Operate');
    await second.waitForSelector('text=ann requested APPROVED');
    await look(second, 'operate');
    await word(second, bob, 'Approve, or say otherwise', 'Approve');
    const confirmed = second.locator('h2:has-text("not confirmed yet") ~ ul .card');
    await confirmed.filter({ hasText: seeded.unresolved }).waitFor();
    expect((await bob.focused()).name).toMatch(
      new RegExp(`^✓ Recorded: APPROVED, the payment ${seeded.unresolved} is AUTHORIZED`),
    );
    service.faults.respondsToLookUps = true;
    await findPayment(second, bob, seeded.unresolved, seeded.unresolved);
    await second.waitForSelector('.by-hand');
    expect(await second.locator('.by-hand').count()).toBe(2);
    await look(second, 'by-hand');
  });

  test('story: a merchant watches its own payment arrive', async () => {
    const token = await world.tokenOf('shop', 'm_test', 'payments:read');
    const [page, keyboard] = await signIn(token, /^My payments$/);
    const paymentId = idOf(await world.service.create({ captureNow: true }));
    await page.waitForSelector(`a:has-text("${paymentId}")`);
    await keyboard.tabTo(new RegExp(`^${paymentId}$`));
    await keyboard.press('Enter');
    await keyboard.arriveAt(new RegExp(paymentId));
    await page.waitForSelector('li:has-text("SALE")');
    await look(page, 'merchant');
    await keyboard.tabTo(/^25.00 USD$/);
    await keyboard.tabTo(/^25.00 USD$/);
    await keyboard.press('Enter');
    expect((await keyboard.focused()).name).toContain('SALE');
  });

  test('the first stop of a page leads past its head, and the next one is in the content', async () => {
    const { page } = await world.visit('/console/verify', await world.tokenOf('ann'), {});
    const keyboard = keyboardOf(page);
    expect((await keyboard.press('Tab')).name).toBe('To the content');
    expect((await keyboard.press('Enter')).tag).toBe('h1');
    expect((await keyboard.press('Tab')).name).toMatch(/^Compare with a head/);
    await keyboard.tabTo(/^Verify$/);
    await keyboard.press('Enter');
    await page.waitForSelector('.finding.good');
    await look(page, 'verify');
    expect((await keyboard.focused()).name).toBe('Verify');
    await keyboard.tabTo(/ events, up to #/);
    await keyboard.press('Enter');
    await page.waitForSelector('details[open] #result');
  });

  test('events wait while the focus is among them, and go on at a key', async () => {
    const [page, keyboard] = await asOperator();
    await page.waitForSelector('text=Connected.');
    const shown = idOf(await world.service.create());
    await page.waitForSelector(`.row a:has-text("${shown}")`);
    await look(page, 'live');
    await keyboard.tabTo(new RegExp(`^${shown}$`));
    await world.service.create();
    await page.waitForSelector('button:has-text("Go on (2 new)")');
    expect((await keyboard.focused()).name).toBe(shown);
    await keyboard.tabTo(/^Go on/, { isBack: true });
    await keyboard.press('Space');
    await page.waitForSelector('button:has-text("Pause")');
  });

  test('a question before a rebuild is taken back or accepted', async () => {
    const [page, keyboard] = await asOperator();
    await goTo(keyboard, 'Operate');
    await keyboard.arriveAt(/^Operate$/);
    await keyboard.tabTo(/^Read models$/);
    await keyboard.press('Enter');
    await page.waitForSelector('dt:has-text("Checkpoint")');
    await keyboard.tabTo(/^Rebuild the read models$/);
    page.once('dialog', (dialog) => dialog.dismiss());
    await keyboard.press('Enter');
    expect(await page.locator('text=the old read models were').count()).toBe(0);
    page.once('dialog', (dialog) => dialog.accept());
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=the old read models were the same');
  });

  test('back and forward, the focus is at the title of the page', async () => {
    const [page, keyboard] = await asOperator();
    await goTo(keyboard, 'Verify');
    await keyboard.arriveAt(/^Verify/);
    await page.goBack();
    await keyboard.arriveAt(/^Live$/);
  });
});
