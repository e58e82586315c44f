/** What a connection to Kafka failed of is told by the codes of its errors, in the operator's words. */
import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, expect, test } from '@jest/globals';
import { pingKafka } from '../../topics/kafka/kafka-connection.ts';
import { hasOpenssl, ownCertificate } from '../support/own-certificate.ts';

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});
const listening = async (server: Server): Promise<string> => {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `localhost:${Object(server.address()).port}`;
};
const tlsServer = (own: { key: string; cert: string }) =>
  listening(createTlsServer(own).on('tlsClientError', () => undefined));
const plainServer = () =>
  listening(createServer((socket) => socket.on('error', () => undefined).end('no TLS\r\n\r\n')));

(hasOpenssl ? test : test.skip).each([
  ['no certificate of its authority', undefined, 'is not signed by an authority of KAFKA_CA_FILE'],
  ['a certificate of another host', 'DNS:other.example', 'names another host than KAFKA_BROKERS'],
  ['a port without TLS', 'no TLS', 'does not speak TLS on this port'],
])('%s', async (_what, name, words) => {
  const own = ownCertificate(name === undefined || name === 'no TLS' ? 'DNS:localhost' : name);
  const broker = await (name === 'no TLS' ? plainServer() : tlsServer(own));
  const tls = { ca: name === undefined ? undefined : own.cert };
  const pinged = pingKafka({ brokers: [broker], topicPrefix: 'causes', tls });
  await expect(pinged).rejects.toThrow(words);
});
