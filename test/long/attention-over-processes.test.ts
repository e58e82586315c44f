/** gaps §25 over three processes: the command API lists what the projector did. */
import { expect, test } from '@jest/globals';
import { payment, signToken } from '../support/in-process.ts';
import { standInMongo } from '../support/stand-in-process.ts';
import { startThreeProcesses } from '../support/three-processes.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

test('an endpoint that the projector disabled is listed until it is enabled', async () => {
  await using readStore = await standInMongo();
  await using receiver = await startReceiver();
  receiver.respond = (_received, response) => response.writeHead(410).end();
  await using three = await startThreeProcesses({
    MONGODB_URL: readStore.url,
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  });
  const send = async (method: string, path: string, claims: object, body?: object) => {
    const bearer = await signToken({ sub: 'tester', ...claims }, three.env.JWT_SECRET);
    const response = await fetch(three.url + path, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return JSON.parse(await response.text());
  };
  const operator = { merchant_id: '*', scope: 'ops:admin' };
  const reasons = async (): Promise<string[]> =>
    (await send('GET', '/ops/v1/attention', operator)).items.map(
      ({ reason }: { reason: string }) => reason,
    );
  const merchant = { merchant_id: 'm_1' };
  const { id } = await send('POST', '/api/v1/webhook-endpoints', merchant, { url: receiver.url });
  await send('POST', '/api/v1/payments', merchant, payment());
  await until('it is listed', async () => (await reasons()).includes('WEBHOOK_DISABLED'));
  receiver.respond = undefined;
  await send('PATCH', `/api/v1/webhook-endpoints/${id}`, merchant, { status: 'ENABLED' });
  expect(await reasons()).toEqual([]);
});
