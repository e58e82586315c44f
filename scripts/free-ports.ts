/** Ports of loopback. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** So many ports that nothing listens on now. */
export const freePorts = async (count: number): Promise<number[]> => {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((done) => server.once('listening', done))));
  const ports = servers.map((server) => Number(Object(server.address()).port));
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
};

/** A folder keeps its port, so that a server started again has the same address. */
export const keptPort = async (folder: string): Promise<number> => {
  const file = join(folder, 'port');
  if (existsSync(file)) return Number(readFileSync(file, 'utf8'));
  const [port = 0] = await freePorts(1);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, String(port));
  return port;
};
