/** The operator's route about the log as a whole: when it was last verified, and up to where it is sealed. */
import { keyIdOf, keysOf } from '../shared/event-store/seals.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import { LogStatus } from './contract.ts';
import type { Sealer } from './seals/sealer.ts';
import type { ScheduledVerification } from './verification/schedule.ts';

export type LogStatusDeps = {
  verification: Pick<ScheduledVerification, 'status'>;
  sealer: Pick<Sealer, 'last'>;
};

/** Milliseconds since 1970 as a time; null for 0, which means never. */
const timeOf = (ms: number): string | null => (ms === 0 ? null : new Date(ms).toISOString());

const verificationOf = ({ verification }: LogStatusDeps) => {
  const { lastRunMs, lastOkMs, broken } = verification.status();
  return { lastRunAt: timeOf(lastRunMs), lastOkAt: timeOf(lastOkMs), broken: broken ?? null };
};

const sealOf = ({ sealer }: LogStatusDeps) => {
  const last = sealer.last();
  if (last === undefined) return null;
  const { event, time: sealedAt } = last;
  return { position: event.data.position, sealedAt, keyId: keyIdOf(keysOf(event).after) };
};

const route = routeWith<LogStatusDeps>();

export const LOG_ROUTES = {
  logStatus: route({
    request: { allMerchants: true },
    responses: okJson(LogStatus),
    handle: (deps, _input, reply) =>
      sendJson(reply, { verification: verificationOf(deps), seal: sealOf(deps) }),
  }),
} satisfies Partial<RoutesOf<'projector', LogStatusDeps>>;
