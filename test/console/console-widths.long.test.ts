/**
 * Every page of the console at 320, 390, 1280 and 1600 px, in dark or light: nothing runs out of the page,
 * no text lies over other text, no line is too long to read, and axe has no serious finding. With
 * TEST_SCREENS=<folder> a picture of each is left there, for eyes.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { seriousViolations } from '../support/accessibility.ts';
import type { Visit } from '../support/browser.ts';
import {
  type ConsoleWorld,
  describeConsole,
  openAttempts,
  type Seeded,
  seedPayments,
} from '../support/console-world.ts';

/** About 100 letters of this font: a longer line is hard to come back from. */
const LINE_PX_MAX = 900;

const WIDTHS = [
  { width: 320, height: 700, colorScheme: 'light' },
  { width: 390, height: 844, colorScheme: 'dark' },
  { width: 1280, height: 800, colorScheme: 'light' },
  { width: 1600, height: 1000, colorScheme: 'dark' },
] as const;

const AMOUNT = 99_999_999;
const MERCHANT = 'payments:read webhooks:write';

type Shown = {
  path: (seeded: Seeded) => string;
  isMerchant?: boolean;
  isSignedOut?: boolean;
  prepare?: string;
};

/** What is done to a page before it is looked at: a button that is pressed, and what comes of it. */
const preparations = (world: ConsoleWorld): Record<string, (page: Page) => Promise<void>> => ({
  events: async (page) => {
    await page.waitForSelector('text=Connected.');
    await world.service.create({ captureNow: true, amount: AMOUNT });
    await world.service.create({ number: '4000000000009995' });
    await page.waitForSelector('.row:nth-child(5)');
  },
  verify: async (page) => {
    await page.click('main button:has-text("Verify")');
    await page.waitForSelector('.finding');
  },
  reconcile: async (page) => {
    await page.click('main button:has-text("Reconcile")');
    await page.waitForSelector('.finding');
  },
  attempts: openAttempts,
  explain: async (page) => {
    await page.click('button:has-text("Explain")');
    await page.waitForSelector('[aria-live] .finding');
  },
  word: async (page) => {
    for (const summary of await page.locator('summary:has-text("by hand")').all()) {
      await summary.click();
    }
  },
});

const PAGES: Record<string, Shown> = {
  live: { path: () => '/console/live', prepare: 'events' },
  find: { path: () => '/console/find' },
  'find-none': { path: () => '/console/find?q=none' },
  payment: { path: ({ refunded }) => `/console/payments/${refunded}`, prepare: 'explain' },
  'payment-then': { path: ({ refunded }) => `/console/payments/${refunded}?revision=2` },
  'payment-declined': { path: ({ declined }) => `/console/payments/${declined}` },
  'payment-disputed': { path: ({ disputed }) => `/console/payments/${disputed}` },
  'payment-by-hand': { path: ({ byHand }) => `/console/payments/${byHand}` },
  'payment-unresolved': { path: ({ unresolved }) => `/console/payments/${unresolved}` },
  verify: { path: () => '/console/verify', prepare: 'verify' },
  unresolved: { path: () => '/console/operate/unresolved', prepare: 'word' },
  attention: { path: () => '/console/operate/attention' },
  parked: { path: () => '/console/operate/parked' },
  rebuild: { path: () => '/console/operate/rebuild' },
  reconcile: { path: () => '/console/operate/reconcile', prepare: 'reconcile' },
  'operate-webhooks': { path: () => '/console/operate/webhooks', prepare: 'attempts' },
  settings: { path: () => '/console/operate/settings' },
  merchant: { path: () => '/console/merchant', isMerchant: true },
  'merchant-payment': {
    path: ({ refunded }) => `/console/merchant/${refunded}`,
    isMerchant: true,
  },
  'merchant-disputed': {
    path: ({ disputed }) => `/console/merchant/${disputed}`,
    isMerchant: true,
  },
  webhooks: { path: () => '/console/webhooks', isMerchant: true, prepare: 'attempts' },
  'sign-in': { path: () => '/console', isSignedOut: true },
  'no-page': { path: () => '/console/nowhere' },
};

/**
 * What is wrong with how a page lies there: how far it runs out sideways; texts that lie over one another
 * or are cut off without a sign, by the boxes of their lines; and lines that are too long.
 */
const LAID_OUT = `(() => {
  const wide = document.scrollingElement.scrollWidth - innerWidth;
  const walker = document.createTreeWalker(document.querySelector('#console'), NodeFilter.SHOW_TEXT);
  const texts = [];
  const cut = [];
  const long = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.data.trim() === '' || parent.closest('option, title, .skip') !== null) continue;
    if (!parent.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      // What a box around it that scrolls or cuts does not show lies nowhere.
      let shown = { left: box.left, right: box.right, top: box.top, bottom: box.bottom };
      for (let around = parent; around !== null; around = around.parentElement) {
        const style = getComputedStyle(around);
        if (style.overflow === 'visible' || around === document.documentElement) continue;
        const edge = around.getBoundingClientRect();
        const isWhole = parent.closest('time, .at, .amount, .status, .revision') !== null;
        const isCut = style.overflowX === 'hidden' && shown.right > edge.right + 1;
        // Clamped lines end in an ellipsis, as a clipped line does.
        const isCutBelow = style.overflowY === 'hidden' && style.webkitLineClamp === 'none' && shown.bottom > edge.bottom + 2;
        if (isCutBelow || (isCut && (isWhole || style.textOverflow !== 'ellipsis'))) {
          cut.push(node.data.trim().slice(0, 40));
        }
        shown = {
          left: Math.max(shown.left, edge.left), right: Math.min(shown.right, edge.right),
          top: Math.max(shown.top, edge.top), bottom: Math.min(shown.bottom, edge.bottom),
        };
      }
      if (shown.right - shown.left < 2 || shown.bottom - shown.top < 2) continue;
      texts.push({ node, text: node.data.trim(), shown });
      const isProse = parent.closest('table, pre, dl, code, .windowed') === null;
      if (isProse && box.width > ${LINE_PX_MAX}) long.push(node.data.trim().slice(0, 40));
    }
  }
  const over = [];
  for (const [at, one] of texts.entries()) {
    for (const other of texts.slice(at + 1)) {
      const across = Math.min(one.shown.right, other.shown.right) - Math.max(one.shown.left, other.shown.left);
      const down = Math.min(one.shown.bottom, other.shown.bottom) - Math.max(one.shown.top, other.shown.top);
      if (one.node !== other.node && across > 2 && down > 4) over.push(one.text.slice(0, 40) + ' / ' + other.text.slice(0, 40));
    }
  }
  return { wide, over, cut: [...new Set(cut)], long };
})()`;

describeConsole('the console, narrow and wide', (world) => {
  let seeded: Seeded;
  beforeAll(async () => {
    seeded = await seedPayments(world);
  });
  afterAll(async () => seeded?.[Symbol.asyncDispose]());

  const expectLaidOut = async (name: string, options: (typeof WIDTHS)[number]): Promise<void> => {
    const { path, isMerchant = false, isSignedOut = false, prepare } = PAGES[name] as Shown;
    const { width, height, colorScheme } = options;
    const reader = isMerchant
      ? await world.tokenOf('shop', 'm_test', MERCHANT)
      : await world.tokenOf('ann');
    const token = isSignedOut ? 'none' : reader;
    const { page, complaints }: Visit = await world.visit('/console', token);
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    await world.visit(path(seeded), token);
    await page.waitForSelector('.waiting', { state: 'detached' });
    if (prepare !== undefined) await preparations(world)[prepare]?.(page);
    await page.waitForLoadState('networkidle', { timeout: 300 }).catch(() => undefined);
    if (process.env.TEST_SCREENS !== undefined) {
      const file = `${name}-${width}-${colorScheme}.png`;
      await page.screenshot({ path: join(process.env.TEST_SCREENS, file), fullPage: true });
    }
    expect(await page.evaluate(LAID_OUT)).toEqual({ wide: 0, over: [], cut: [], long: [] });
    expect(await seriousViolations(page)).toEqual([]);
    expect(complaints).toEqual([]);
  };

  describe.each(WIDTHS)('$width px, $colorScheme', (options) => {
    test.each(Object.keys(PAGES))('%s', (name) => expectLaidOut(name, options));
  });
});
