/** The responses of the projector's routes, as schemas. */
import { z } from 'zod';

const time = () => z.string().meta({ format: 'date-time' });

export const ParkedList = z
  .object({
    parked: z.array(
      z.object({
        paymentId: z.string(),
        revision: z.int().min(0),
        reason: z.string(),
        since: time(),
      }),
    ),
  })
  .meta({ id: 'ParkedList' });

export const ParkedRetry = z
  .object({
    paymentId: z.string(),
    whole: z.boolean().describe('True where the document of the payment is up to date now.'),
    at: z.int().min(0).optional(),
    reason: z.string().optional(),
  })
  .meta({ id: 'ParkedRetry' });

const checksum = z.object({ documents: z.int().min(0), hash: z.string() });

const rebuild = z.object({
  state: z.enum(['running', 'done', 'failed']),
  startedAt: time(),
  endedAt: time().optional(),
  done: z.int().min(0).describe('Events that are in the new read models.'),
  total: z.int().min(0),
  perSecond: z.number(),
  secondsLeft: z.number(),
  result: z
    .object({
      events: z.int().min(0),
      seconds: z.number(),
      checkpoint: z.string().nullable(),
      old: checksum,
      new: checksum,
      equal: z.boolean().describe('False where the old read models were wrong.'),
    })
    .optional(),
  reason: z.string().optional().describe('Why it failed.'),
});

export const ProjectionList = z
  .object({
    projections: z.array(
      z.object({
        projection: z.string(),
        state: z.enum([
          'starting',
          'catching-up',
          'running',
          'backing-off',
          'standing-by',
          'stopped',
          'stuck',
        ]),
        checkpoint: z.string().nullable(),
        head: z.string().nullable().describe('Null where the event store is out of reach.'),
        lagEvents: z.int().min(0).nullable(),
        lagSeconds: z
          .number()
          .nullable()
          .describe('Age of the oldest event that is not applied yet.'),
        caughtUp: z.boolean(),
        parked: z.int().min(0),
        reason: z.string().optional(),
        rebuild: rebuild
          .nullable()
          .describe('The running rebuild of this process, else its last one.'),
      }),
    ),
  })
  .meta({ id: 'ProjectionList' });

export const RebuildStarted = z
  .object({
    status: z.literal('started'),
    progress: z.string().describe('The path of the status, which shows the progress.'),
  })
  .meta({ id: 'RebuildStarted' });
