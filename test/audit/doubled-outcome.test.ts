/** M5: an event that another program appended, all hashes right, is found by whatever looks at its payment. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import { openAuditStory } from '../support/audit-story.ts';
import { runCli } from '../support/cli.ts';
import { token } from '../support/in-process.ts';

const { service, story, stop } = await openAuditStory();
afterAll(() => stop());

let env: Record<string, string>;
beforeAll(async () => {
  await service.restart(async (dataDir) => {
    const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite') });
    const last = (await store.readStream(streamOf(story))).at(-1);
    if (last === undefined) throw new Error('the story has no events');
    const { id: _, ...again } = last;
    await store.append(last.stream, last, [{ ...again, id: newEventId() }]);
    await store.close();
  });
  env = {
    PAYMENTS_URL: await service.listen(),
    PAYMENTS_TOKEN: await token('*', 'audit:read ops:admin'),
  };
});

test.each([
  [['reconcile'], 'differ'],
  [['reconcile', story], 'cannot be compared'],
  [['verify', story], 'no intent of its operation'],
  [['verify', '--read-models'], story],
])('a refund that is stored twice: %j ends with 3', async (args, text) => {
  const { code, stdout, stderr } = await runCli(args, env);
  expect(stdout + stderr).toContain(text);
  expect(code).toBe(3);
});
