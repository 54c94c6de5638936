# wirelint with mitmproxy. `docker run IMAGE proxy --upstream URL --listen-host 0.0.0.0`; captures are written to /captures.
FROM python:3.13-slim AS build
COPY . /source
# Optional packages, as in `--build-arg EXTRAS=cloud,prices`.
ARG EXTRAS=""
RUN python -m venv /opt/wirelint && /opt/wirelint/bin/pip install --no-cache-dir "/source${EXTRAS:+[$EXTRAS]}"

FROM python:3.13-slim
COPY --from=build /opt/wirelint /opt/wirelint
RUN useradd --uid 10001 --create-home wirelint && install -d -o wirelint /captures
ENV PATH=/opt/wirelint/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /
VOLUME /captures
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 8080), 2).close()"]
ENTRYPOINT ["wirelint"]
CMD ["--help"]
