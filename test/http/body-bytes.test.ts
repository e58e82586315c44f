/** What a request brought does not stay in memory (gaps §4). */
import { expect, test } from '@jest/globals';
import Fastify from 'fastify';
import { readCreate } from '../../command-api/request/read-request.ts';
import payment from '../../examples/payment.json' with { type: 'json' };

test('the bytes of a body are overwritten once they have been read', async () => {
  const app = Fastify();
  let bytes: unknown;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/', async (request) => {
    bytes = request.body;
    return readCreate(request).ok;
  });
  const { body } = await app.inject({ method: 'POST', url: '/', payload: payment });
  await app.close();
  expect(body).toBe('true');
  expect(bytes).toEqual(Buffer.alloc(JSON.stringify(payment).length));
});
