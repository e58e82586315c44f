/**
 * The console and the command line give the same answer to the same question: what a page shows is held
 * against what `payments` prints of the same service.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { hasGoodSignature } from '../../audit/manifest.ts';
import { look } from '../support/accessibility.ts';
import type { CliRun } from '../support/cli.ts';
import { describeConsole } from '../support/console-world.ts';
import { idOf, leaveUnresolved, locatedId, SECRET } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const DISPUTED = '4000000000004301';

/** The text in one line, as it is read. */
const plain = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** What stands behind the first or the named `Raw JSON`. */
const rawIn = async (place: Page | Locator, name = 'Raw JSON'): Promise<unknown> => {
  const details = place.locator('details', { hasText: name }).first();
  await details.locator('summary').click();
  return JSON.parse(await details.locator('pre').innerText());
};

describeConsole('console and CLI', (world) => {
  const folder = temporaryFolder();
  let refunded: string;
  let disputed: string;
  let unresolved: string;

  const cli = (...args: string[]): Promise<CliRun> => world.cli(...args);
  const cliJson = async (...args: string[]) =>
    JSON.parse((await cli(...args, '--format', 'json')).stdout);
  const open = async (path: string): Promise<Page> =>
    (await world.visit(`/console${path}`, await world.tokenOf('ann'))).page;

  beforeAll(async () => {
    const { service } = world;
    refunded = idOf(await service.create({ captureNow: true, merchantReference: 'order-7' }));
    await service.change('refund', refunded, { refundAmount: 500, reason: 'damaged' });
    disputed = idOf(await service.create({ captureNow: true, number: DISPUTED }));
    const isDisputed = async () => (await service.get(disputed)).json.disputes !== undefined;
    await until('the payment is disputed', isDisputed);
    unresolved = locatedId(await leaveUnresolved(service, 'answer lost', () => service.create()));
  });
  afterAll(() => {
    expect(world.visits.flatMap(({ complaints }) => complaints)).toEqual([]);
    folder.remove();
  });

  test('what happened: each row has the words of the line', async () => {
    const page = await open(`/payments/${disputed}`);
    await page.waitForSelector('.event');
    const lines = (await cli('events', disputed)).stdout.trimEnd().split('\n');
    const texts = await page.locator('.event .type').allInnerTexts();
    const whys = await page.locator('.event .type small').all();
    const titles = await Promise.all(whys.map((why) => why.getAttribute('title')));
    const rows = texts.map((text, at) => [text, titles[at] ?? ''] as const);
    expect(rows).toHaveLength(lines.length);
    for (const [at, [text, why]] of rows.entries()) {
      const [type] = text.split('\n');
      expect(lines[at]).toMatch(new RegExp(`  ${type}  `));
      expect(lines[at]?.endsWith(why)).toBe(true);
    }
    expect(rows.at(-1)?.[1]).toMatch(/^the cardholder disputes it: fraudulent/);
    expect(await rawIn(page)).toEqual(await cliJson('events', disputed));
  });

  test('what was true at a revision, and what is different now', async () => {
    const page = await open(`/payments/${refunded}?revision=2`);
    await page.waitForSelector('text=What GET answered then');
    const { payment, differences } = await cliJson('events', refunded, '--state', '--at', '2');
    expect(await rawIn(page, 'The whole body')).toEqual(payment);
    const paths = await page.locator('[aria-label=Differences] tbody th').allInnerTexts();
    expect(paths).toEqual(differences.map(({ path }: { path: string }) => path));
  });

  test('why a refund would be refused, and that a dispute forbids it', async () => {
    const page = await open(`/payments/${disputed}`);
    await page.click('button:has-text("Explain")');
    const shown = plain(await page.locator('[aria-live]').innerText());
    const { stdout } = await cli('explain', disputed, 'refund');
    const [line = ''] = stdout.split('\n');
    expect(shown).toContain(plain(line));
    const { forbiddenBy } = await cliJson('explain', disputed, 'refund');
    expect(forbiddenBy.map(({ type }: { type: string }) => type)).toContain('PaymentDisputed');
    for (const { why } of forbiddenBy) expect(shown).toContain(why);
    expect(shown).toContain('while it is open nothing is refunded');
  });

  test('what the provider says of each operation; where it is away, that is said', async () => {
    const page = await open(`/payments/${refunded}`);
    const section = page.locator('section[aria-labelledby=provider]');
    await section.locator('tbody tr').first().waitFor();
    const said = await cliJson('reconcile', refunded);
    expect(await rawIn(section)).toEqual(said);
    const findings = await section.locator('tbody tr').allInnerTexts();
    expect(findings.map((text) => plain(text).replace(/ [▸▶].*/, ''))).toEqual([
      expect.stringMatching(/SALE 25.00 USD APPROVED APPROVED sim_\d+ ✓ provider agrees both say/),
      expect.stringMatching(/REFUND 5.00 USD APPROVED APPROVED sim_\d+ ✓ provider agrees both say/),
    ]);
    expect((await cli('reconcile', refunded)).code).toBe(0);
    world.service.faults.respondsToLookUps = false;
    await section.getByText('Ask the provider again').click();
    await section.getByText('provider silent').first().waitFor();
    expect(await section.getByText('no entry').count()).toBe(0);
    expect((await cli('reconcile', refunded)).code).toBe(1);
    world.service.faults.respondsToLookUps = true;
    const differing = await open(`/payments/${unresolved}`);
    await differing.waitForSelector('td:has-text("UNRESOLVED_IN_LOG")');
    expect((await cli('reconcile', unresolved)).code).toBe(3);
  });

  test('whether a payment and the whole log verify', async () => {
    const page = await open(`/payments/${refunded}`);
    const found = page.locator('.finding.good');
    await found.waitFor();
    const { events } = await cliJson('verify', refunded);
    expect(await found.innerText()).toContain(`${events} events`);
    await open('/verify');
    await page.click('main button:has-text("Verify")');
    const finding = page.locator('.finding.good');
    await finding.waitFor();
    expect(await finding.innerText()).toMatch(/^✓ intact: \d+ events, up to #\d+$/);
    const shown = (await rawIn(page)) as { events: number; head: object };
    const whole = await cliJson('verify', '--all');
    // The reading before is an event by now.
    const { events: _, head: __, sealed: ___, ...rest } = whole;
    expect(shown).toMatchObject(rest);
    expect(whole.events - shown.events).toBeLessThan(5);
  });

  test('the same file, byte for byte', async () => {
    const page = await open(`/payments/${refunded}`);
    const saved: string[] = [];
    page.on('download', async (download) => {
      const file = join(folder.path, download.suggestedFilename());
      await download.saveAs(file);
      saved.push(file);
    });
    await page.click('text=Download the events');
    await until('both files are saved', () => saved.length === 2);
    const out = join(folder.path, 'cli.jsonl');
    await cli('export', refunded, '--out', out);
    const own = join(folder.path, `${refunded}.jsonl`);
    expect(readFileSync(own)).toEqual(readFileSync(out));
    // The time is under the signature, so each has one of its own.
    const manifest = (file: string) => {
      const read = JSON.parse(readFileSync(`${file}.manifest.json`, 'utf8'));
      expect(hasGoodSignature(read, undefined)).toBe(true);
      const { exportedAt: _, signature, ...rest } = read;
      return { ...rest, publicKey: signature.publicKey };
    };
    expect(manifest(own)).toEqual(manifest(out));
  });

  test.each([
    ['q=order-7', ['order-7']],
    ['status=AUTHORIZED', ['--status', 'AUTHORIZED']],
    ['minAmount=25.00&maxAmount=25.00', ['--min-amount', '2500', '--max-amount', '2500']],
    ['from=2020-01-01T00:00', ['--from', '2020-01-01T00:00:00Z']],
    ['q=none', ['none']],
  ])('what is found by %s', async (query, args) => {
    const page = await open(`/find?${query}`);
    await page.waitForSelector('p[role=status]:has-text("all of them"), p:has-text("No payment")');
    const { payments } = await cliJson('find', ...args);
    const ids = payments.map(({ paymentId }: { paymentId: string }) => paymentId);
    expect(await page.locator('tbody a.id').allInnerTexts()).toEqual(ids);
  });

  test('what is unresolved, parked, different at the provider, and set', async () => {
    const page = await open('/operate/unresolved');
    const card = page.locator('.card', { hasText: unresolved });
    await card.waitFor();
    const [listed] = await cliJson('unresolved');
    expect(await rawIn(card)).toEqual(listed);
    expect(await card.innerText()).toContain('create of 25.00 USD');

    await open('/operate/parked');
    await page.waitForSelector('text=No payment is parked');
    expect(await cliJson('parked', 'list')).toEqual([]);

    await open('/operate/reconcile');
    await page.getByLabel('All operations').check();
    await page.click('main button:has-text("Reconcile")');
    await page.locator('.finding').waitFor();
    const reconciled = await cli('reconcile', '--all');
    const row = plain(await page.locator('tbody tr').innerText());
    const line = reconciled.stdout.split('\n').find((text) => text.includes(unresolved)) ?? '';
    for (const side of ['AUTHORIZE 25.00 USD unresolved', 'AUTHORIZE 25.00 USD APPROVED']) {
      expect(row).toContain(side);
      expect(line).toContain(side);
    }
    expect(await rawIn(page)).toEqual(await cliJson('reconcile', '--all'));

    await open('/operate/settings');
    await page.waitForSelector('th:has-text("JWT_SECRET")');
    expect(await page.locator('main').innerText()).not.toContain(SECRET);
    await look(page, 'settings');
    const rows = await page.locator('[aria-label=Settings] tbody tr').allInnerTexts();
    const { settings } = await cliJson('doctor');
    expect(rows.map(plain)).toEqual(
      settings.map(({ name, value, origin }: Record<string, string>) =>
        plain(`${name} ${value} ${origin}`),
      ),
    );
  });
});
