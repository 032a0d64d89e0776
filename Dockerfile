# A coordinator with its dashboard, or a sidecar: `docker run guardband agent --help`.
FROM python:3.11-slim-bookworm AS build
COPY . /source
RUN sh /source/deploy/install.sh /opt/guardband

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --home-dir /data guardband && install -d -o guardband -g guardband /data
# Machine code is used only where it belongs to the user who runs it: nobody else may change it.
COPY --from=build --chown=guardband:guardband /opt/guardband /opt/guardband
ENV PATH=/opt/guardband/bin:$PATH NUMBA_CACHE_DIR=/opt/guardband/kernels PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8710
ENTRYPOINT ["guardband"]
# Inside a network of containers; before the rest of the world belongs a proxy with TLS.
CMD ["serve", "--data", "/data", "--host", "0.0.0.0", "--insecure", "--open-metrics"]
