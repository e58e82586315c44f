/** A merchant's server for the bench: accepts every message, and says on GET how many there were. */
import { createServer } from 'node:http';

let received = 0;
createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(String(received));
    return;
  }
  received += 1;
  request.resume().on('end', () => response.writeHead(204).end());
}).listen(Number(process.env.PORT), '127.0.0.1');
