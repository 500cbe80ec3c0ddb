# The image holds one static binary, root certificates for rediss://, and a
# configuration to try it out with. Mount your own as
# /etc/redlock-proxy/config.yaml, without which the program ends; it must listen
# on 0.0.0.0, keep an admin address (the health check asks it) and be readable by
# user 65532. `docker run -p 6380:6380 IMAGE -config demo.yaml` tries it out with
# embedded servers: the shipped config.yaml with its two addresses opened up, for
# inside a container 127.0.0.1 is reachable by nobody.
#
# podman and buildah keep the HEALTHCHECK only with --format docker.
#
# The base is pinned to a release of Go. A tag can be moved: who publishes an image pins the
# digest that was tested, by --build-arg BASE=golang@sha256:...
ARG BASE=golang:1.26.8
FROM $BASE AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# With .git in the build context, -version tells the commit. Without it, as in a
# released archive, say --build-arg COMMIT=... The .git of a worktree or a
# submodule only points out of the context and would stop the build, so it is
# dropped.
ARG COMMIT=
RUN git status >/dev/null 2>&1 || rm -rf .git; \
    CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X redlock-proxy/proxy.commit=$COMMIT" -o /out/redlock-proxy .
RUN sed -e 's/^listen: 127\.0\.0\.1:/listen: 0.0.0.0:/' -e 's/^admin: 127\.0\.0\.1:/admin: 0.0.0.0:/' \
        config.yaml > /out/demo.yaml \
    && grep -qx 'listen: 0.0.0.0:6380' /out/demo.yaml \
    && grep -qx 'admin: 0.0.0.0:9380' /out/demo.yaml

FROM scratch
ARG COMMIT=
# proxy/version.go has the number.
ARG VERSION=0.9.0
LABEL org.opencontainers.image.title="redlock-proxy" \
      org.opencontainers.image.description="Redis proxy that makes locks Redlock" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/redlock-proxy /redlock-proxy
COPY deploy/LICENCES.txt /LICENCES.txt
COPY --from=build /out/demo.yaml /etc/redlock-proxy/demo.yaml
# config.yaml is read from the working directory, by -healthcheck as well.
WORKDIR /etc/redlock-proxy
USER 65532:65532
EXPOSE 6380 9380
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/redlock-proxy", "-healthcheck"]
ENTRYPOINT ["/redlock-proxy"]
