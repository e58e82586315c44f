/**
 * The bare server that the bench compares with: Fastify, nothing else. POST sends its body back, GET
 * sends BYTES bytes.
 */
import fastify from 'fastify';

const body = JSON.stringify('x'.repeat(Math.max(Number(process.env.BYTES) - 2, 0)));
const app = fastify();
app.post('/', (request) => request.body);
app.get('/', (_request, reply) => reply.type('application/json; charset=utf-8').send(body));
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
