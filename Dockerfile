# A penstock node in a container: docs/install.md tells how to run it, and what it needs for what.

FROM node:22-bookworm AS builder
WORKDIR /src
COPY . .
# npm ci builds too; the tree is the program, the addon, and the dependencies that it needs to run.
RUN npm ci && node packaging/tree.js /out && rm -rf /out/man /out/completions

FROM node:22-bookworm-slim AS runtime
# With it encryption is several times faster; Debian has it for amd64.
RUN if [ "$(dpkg --print-architecture)" = amd64 ]; then \
    apt-get update -q && apt-get install -qy --no-install-recommends libipsec-mb1 && rm -rf /var/lib/apt/lists/*; \
  fi
COPY --from=builder /out /usr/lib/penstock
RUN ln -s ../lib/penstock/bin/penstock.js /usr/bin/penstock \
  && groupadd --gid 10001 penstock \
  && useradd --uid 10001 --gid penstock --home-dir /var/lib/penstock --no-create-home --shell /usr/sbin/nologin penstock \
  && install -d -m 0700 -o penstock -g penstock /var/lib/penstock
# Callers come from outside of the container, so they need a token; the commands in it find theirs in the data directory.
ENV PENSTOCK_DATA_DIRECTORY=/var/lib/penstock \
  PENSTOCK_HTTP_ADDRESS=0.0.0.0:8769 \
  PENSTOCK_GRPC_ADDRESS=0.0.0.0:8770 \
  PENSTOCK_ACCESS_LOOPBACK=token
USER penstock
VOLUME /var/lib/penstock
EXPOSE 8769 8770
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=15s CMD ["penstock", "status"]
ENTRYPOINT ["penstock"]
CMD ["up"]
