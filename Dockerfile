# One image for every process; without a command it is the embedded service on port 8080:
#   docker run --read-only --tmpfs /tmp -v payments-data:/data -p 127.0.0.1:8080:8080 payments:1.0.0
# The others: node scripts/launch.cjs and command-api/main.ts, query-api/main.ts, projector/main.ts or
# providers/simulator/main.ts. docker-compose.yml runs each; docs/containers.md is the page.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No install script runs. The base image has Node 24, so the optional package that brings one goes (126 MB);
# the other optional packages send traces.
RUN npm ci --omit=dev --ignore-scripts && rm -r node_modules/node-linux-* node_modules/.bin/node
COPY scripts/bill-of-materials.cjs scripts/
RUN node scripts/bill-of-materials.cjs > bill-of-materials.cdx.json

FROM ${NODE_IMAGE} AS sources
WORKDIR /app
COPY . .
# docker build --build-arg COMMIT=$(git rev-parse --short HEAD): the image has no git to ask.
ARG COMMIT=
RUN [ -z "$COMMIT" ] || echo "$COMMIT" > shared/runtime/commit.txt
# Readable for every user and writable for root only, whatever the umask of the checkout.
RUN chmod -R u=rwX,go=rX . && chmod 755 cli/payments.mjs

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="payments" \
      org.opencontainers.image.description="An event-sourced card payment service" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production NODE_OPTIONS="--disable-sigusr1 --max-semi-space-size=32 --v8-pool-size=1" HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=sources /app .
COPY --from=packages /app/bill-of-materials.cdx.json .
RUN install -d -o node -g node -m 700 /data && ln -s /app/cli/payments.mjs /usr/local/bin/payments
USER node
VOLUME /data
EXPOSE 8080 8081 8082 8083 8090
STOPSIGNAL SIGTERM
# Not readiness: while the event store is away, a restart of every process would mend nothing.
HEALTHCHECK --interval=5s --timeout=10s --start-period=120s --retries=6 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/live`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT []
CMD ["node", "scripts/launch.cjs", "embedded/main.ts"]
