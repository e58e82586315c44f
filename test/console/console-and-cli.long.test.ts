/**
 * The console and the command line give the same answer to the same question, where each makes its own words
 * or its own request of it: what a page shows is held against what `payments` prints of the same service.
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

  test('what is different at the provider: each side of the unresolved operation', async () => {
    const page = await open('/operate/reconcile');
    await page.getByLabel('All operations').check();
    await page.click('main button:has-text("Reconcile")');
    await page.locator('.finding').waitFor();
    const row = plain(await page.locator('tbody tr').innerText());
    const { stdout } = await cli('reconcile', '--all');
    const line = stdout.split('\n').find((text) => text.includes(unresolved)) ?? '';
    for (const side of ['AUTHORIZE 25.00 USD unresolved', 'AUTHORIZE 25.00 USD APPROVED']) {
      expect(row).toContain(side);
      expect(line).toContain(side);
    }
  });

  test('the settings in effect, and no secret', async () => {
    const page = await open('/operate/settings');
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
