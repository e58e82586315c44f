import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { sqliteDeliveries } from '../../webhooks/store/sqlite.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { describeDeliveryStore } from './describe-delivery-store.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const file = join(folder.path, 'webhook-deliveries.sqlite');

describeDeliveryStore({ name: 'sqlite', open: () => sqliteDeliveries(file) });

test('the file is readable by its owner alone, and only made where something is kept', async () => {
  const other = join(folder.path, 'other.sqlite');
  const store = sqliteDeliveries(other);
  expect(() => statSync(other)).toThrow('ENOENT');
  await store.save('we_1', '1', 0, []);
  expect(statSync(other).mode & 0o777).toBe(0o600);
  await store.close();
});
