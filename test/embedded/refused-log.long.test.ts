/** A service whose user may not read the whole log of EventStoreDB: it says so, and is not ready. */
import { expect, test } from '@jest/globals';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import { isReady } from '../support/service-client.ts';
import { SECRET } from '../support/service-in-process.ts';
import { spawnService } from '../support/service-processes.ts';
import { until } from '../support/until.ts';

const LINE = /lacks the right to read \$all.*npm run eventstoredb:rights/;

test('without the right to read $all the banner and readiness name it, and the log has one line', async () => {
  const standIn = await startStandIn();
  standIn.refuseAll(true);
  try {
    await using service = await spawnService({
      env: { EVENTSTOREDB_URL: standIn.url, IDEMPOTENCY_SECRET: SECRET, WEBHOOK_SECRET: SECRET },
    });
    const banner = () => /listens, not ready yet[\s\S]*Waits for: (.*)/.exec(service.stderr())?.[1];
    await until('it listens', () => banner() !== undefined);
    expect(banner()).toMatch(LINE);
    const response = await fetch(`${service.url}/health/ready`);
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({
      engines: { eventStore: { state: 'down', reason: expect.stringMatching(LINE) } },
    });
    const subscribed = standIn.calls.subscribe;
    await until('it was refused again', () => standIn.calls.subscribe > subscribed + 2);
    const refused = service.stdout().match(/subscribing again until it succeeds/g) ?? [];
    standIn.refuseAll(false);
    await until('it is ready', () => isReady(service.url));
    expect(refused).toHaveLength(1);
  } finally {
    await standIn.close();
  }
});
