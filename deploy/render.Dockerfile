# Pages in a real browser: the services' image with Debian's Chromium. It needs no more rights than they do.
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml .npmrc ./
COPY patches patches
COPY packages packages
COPY services services
RUN npx -y pnpm@10.34.9 install --prod --frozen-lockfile --ignore-scripts --filter '!@tollgate/testing'

FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends chromium fonts-liberation fonts-noto-cjk \
  && rm -rf /var/lib/apt/lists/*
# Without the namespaces that a container runtime withholds, the browser's own sandbox can't start: the container is it.
ENV NODE_ENV=production OTARI_RENDER_SANDBOX=false
WORKDIR /app
COPY --from=packages /app ./
COPY scripts scripts
USER node
EXPOSE 9090
ENTRYPOINT ["node", "services/run.ts"]
CMD ["render-worker"]
