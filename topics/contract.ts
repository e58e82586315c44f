import { z } from 'zod';
import { named, time } from '../shared/http/fields.ts';
import { RELAY_STATES } from './status.ts';

const relayParked = z.object({
  paymentId: z.string(),
  from: z.int().min(0).describe('The first revision whose messages wait.'),
  to: z.int().min(0).describe('The last one.'),
  reason: z.string().describe('Why `from` could not be sent, in 100 characters.'),
  since: time(),
});

export const RelayParkedList = named('RelayParkedList', {
  state: z.enum(RELAY_STATES).describe('Of the relay in this process.'),
  error: z.string().optional().describe('Why the relay backs off or has halted.'),
  count: z.int().min(0).describe('Payments that are parked.'),
  parked: z.array(relayParked).describe('The first 1,000 of them, the longest parked first.'),
});
export type RelayParkedList = z.infer<typeof RelayParkedList>;

export const RelayParkedRetry = named('RelayParkedRetry', {
  paymentId: z.string(),
  sent: z.boolean().describe('True where all that waited is sent and acknowledged.'),
  at: z.int().min(0).optional().describe('The revision that still cannot be sent.'),
  reason: z.string().optional(),
});
export type RelayParkedRetry = z.infer<typeof RelayParkedRetry>;

export const RelayParkedRetries = named('RelayParkedRetries', {
  retried: z.array(RelayParkedRetry).describe('At most 100.'),
  left: z.int().min(0).describe('Parked payments that this request has not tried.'),
});
export type RelayParkedRetries = z.infer<typeof RelayParkedRetries>;
