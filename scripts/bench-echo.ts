/** The bare server that `npm run bench` compares with: Fastify, nothing else. */
import fastify from 'fastify';

const app = fastify();
app.post('/', (request) => request.body);
app.get('/', () => ({ ok: true }));
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
