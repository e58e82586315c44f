/** Whether a notice is Stripe's: the signature over time and raw body (`Stripe-Signature: t=…,v1=…`). */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** A notice that was signed longer ago may be one that somebody kept; also for our clock. */
const TOLERANCE_S = 300;

const signatureOf = (secret: string, time: string, body: Buffer): Buffer =>
  createHmac('sha256', secret).update(`${time}.`).update(body).digest();

/** True where one of the secrets signed exactly this body within the tolerance. */
export const isSignedByStripe = (
  body: Buffer,
  header: string,
  secrets: readonly string[],
  nowMs: number,
): boolean => {
  const parts = header.split(',').map((part) => part.split('=', 2));
  const valuesOf = (name: string): string[] =>
    parts.flatMap(([key, value]) => (key?.trim() === name && value !== undefined ? [value] : []));
  const [time = '', ...others] = valuesOf('t');
  const ageS = Math.abs(nowMs / 1_000 - Number(time));
  if (others.length > 0 || !/^[0-9]{1,12}$/.test(time) || ageS > TOLERANCE_S) return false;
  const given = valuesOf('v1').filter((value) => /^[0-9a-f]{64}$/.test(value));
  const expected = secrets.map((secret) => signatureOf(secret, time, body));
  return given.some((value) =>
    expected.some((own) => timingSafeEqual(own, Buffer.from(value, 'hex'))),
  );
};
