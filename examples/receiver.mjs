/** Receives webhooks of the payment service. SECRET is what `payments webhooks create` or `listen --print-secret` shows. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const key = Buffer.from(process.env.SECRET.replace('whsec_', ''), 'base64');
const revisions = new Map(); // in your database: the last revision of each payment
const isSigned = (
  { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': given = '' },
  body,
) => {
  const own = Buffer.from(
    `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`,
  );
  const isGood = given
    .split(' ')
    .some((one) => one.length === own.length && timingSafeEqual(Buffer.from(one), own));
  return isGood && Math.abs(Date.now() / 1000 - time) <= 300;
};
const receive = (body) => {
  const { type, data } = JSON.parse(body);
  if (!data.payment || data.revision <= (revisions.get(data.payment.paymentId) ?? -1)) return;
  revisions.set(data.payment.paymentId, data.revision);
  console.log(type, data.payment.paymentId, data.payment.status);
};
createServer(async (request, response) => {
  try {
    const body = Buffer.concat(await request.toArray());
    const isGood = isSigned(request.headers, body);
    if (isGood) receive(body);
    response.writeHead(isGood ? 204 : 401).end();
  } catch (error) {
    console.error(error.message); // also a request that ends before its body does
    response.writeHead(400).end();
  }
}).listen(process.env.PORT ?? 3000);
