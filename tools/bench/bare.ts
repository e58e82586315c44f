/**
 * The cheapest servers there are: Fastify, or with the argument `node` Node's own http. A POST sends its
 * body back; a GET sends as many bytes as a payment has.
 */
import { createServer } from 'node:http';
import fastify from 'fastify';

/** The length of the service's response to a GET of a payment made by examples/payment.json. */
const BYTES = 1547;
const body = JSON.stringify('x'.repeat(BYTES - 2));
const JSON_TYPE = 'application/json; charset=utf-8';
const address = { host: '127.0.0.1', port: Number(process.env.PORT) };

const startNode = (): void => {
  const server = createServer((request, response) => {
    response.setHeader('content-type', JSON_TYPE);
    if (request.method === 'GET') return response.end(body);
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => response.end(JSON.stringify(JSON.parse(text))));
  });
  server.listen(address);
};

const startFastify = async (): Promise<void> => {
  const app = fastify();
  app.get('/health/ready', () => 'ready');
  app.post('/api/v1/payments', (request) => request.body);
  app.get('/api/v1/payments/:id', (_request, reply) => reply.type(JSON_TYPE).send(body));
  await app.listen(address);
};

if (process.argv[2] === 'node') startNode();
else await startFastify();
