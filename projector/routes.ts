/** The routes of the projector: those for operators (scope `ops:admin`), and the export of auditors. */
import type { FastifyInstance } from 'fastify';
import { EXPORT_ROUTES, type ExportDeps, type Exporting } from '../audit/export.ts';
import { LOG_ROUTES, type LogStatusDeps } from '../audit/log-routes.ts';
import { openReading } from '../audit/routes.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { joinRoutes, type RoutesOf, registerRoutes } from '../shared/http/route.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import {
  openTopics,
  RELAY_PARKED_ROUTES,
  type RelayParkedDeps,
  TOPIC_ROUTES,
  type TopicDeps,
  type TopicOptions,
} from '../topics/topic-routes.ts';
import {
  PARKED_ROUTES,
  type ParkedDeps,
  PROJECTION_ROUTES,
  type ProjectionDeps,
} from './projection-routes.ts';

export const PROJECTOR_ROUTES: RoutesOf<
  'projector',
  ParkedDeps & ProjectionDeps & TopicDeps & RelayParkedDeps & LogStatusDeps & Exporting
> = joinRoutes(
  PARKED_ROUTES,
  LOG_ROUTES,
  PROJECTION_ROUTES,
  TOPIC_ROUTES,
  RELAY_PARKED_ROUTES,
  EXPORT_ROUTES,
);

type ProjectorApi = TopicOptions &
  RelayParkedDeps &
  ParkedDeps &
  LogStatusDeps &
  Pick<ProjectionDeps, 'projector'> &
  Pick<ExportDeps, 'store' | 'readModels' | 'sign'>;

export const registerProjectorApi = (
  app: FastifyInstance,
  authHooks: AuthHooks,
  { topicPrefix, sign, ...api }: ProjectorApi,
): void => {
  const { store, readModels, relay } = api;
  const topics = openTopics({ store, relay, topicPrefix });
  const exporting = { ...openReading(app, { store, readModels }), sign };
  const streams = createStreams(app);
  registerRoutes(app, authHooks, PROJECTOR_ROUTES, { ...topics, ...api, streams, exporting });
};
