# Two stages: the second holds no compiler, no pip cache, no tests.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/oombot && /opt/oombot/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY bot bot
COPY rules rules
COPY migrations migrations
RUN /opt/oombot/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home --skel /dev/null --home-dir /data oombot
COPY --from=build /opt/oombot /opt/oombot
ENV PATH=/opt/oombot/bin:$PATH PYTHONUNBUFFERED=1 \
    OOMBOT_HOST=0.0.0.0 OOMBOT_PORT=8080 OOMBOT_PAGE=off \
    OOMBOT_DATABASE_URL=sqlite+aiosqlite:////data/oombot.db
USER oombot
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
ENTRYPOINT ["oombot"]
CMD ["serve"]
