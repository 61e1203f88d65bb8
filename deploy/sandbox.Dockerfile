# The bundled code-execution backend with the usual scientific packages, all from Debian.
FROM node:24-bookworm-slim AS packages
WORKDIR /app
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml .npmrc ./
COPY patches patches
COPY packages packages
COPY services services
RUN npx -y pnpm@10.34.9 install --prod --frozen-lockfile --ignore-scripts --filter '!@tollgate/testing'

FROM node:24-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends \
    python3 python3-numpy python3-pandas python3-matplotlib python3-scipy python3-openpyxl python3-pypdf \
  && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production OTARI_SANDBOX_HOST=0.0.0.0 OTARI_SANDBOX_PYTHON=/usr/bin/python3
WORKDIR /app
COPY --from=packages /app ./
COPY scripts scripts
USER node
EXPOSE 8080 9090
ENTRYPOINT ["node", "services/run.ts"]
CMD ["sandbox"]
