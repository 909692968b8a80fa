# plugbay in a container, for hosts that start their servers with `docker run`.
#
#   docker build -t plugbay .
#   docker run -i --rm --init -v "$HOME/.config/plugbay:/home/plugbay/.config/plugbay:ro" plugbay
#
# The image has plugbay only: enough for servers behind a URL. The target `runtimes` adds Node, Python and uv for servers
# that are started with npx or uvx:
#
#   docker build --target runtimes -t plugbay:runtimes .

FROM rust:1.95-alpine AS build
# A C compiler for the cryptography of rustls.
RUN apk add --no-cache build-base
WORKDIR /src
COPY . .
# What is compiled stays in a cache of the builder; the program itself must leave it.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p plugbay \
    && install -D -m 755 target/release/plugbay /out/plugbay

FROM alpine:3.22 AS base
# Certificates for servers behind a URL.
RUN apk add --no-cache ca-certificates \
    && adduser -D -u 10001 plugbay \
    && install -d -o plugbay -g plugbay /home/plugbay/.config/plugbay /home/plugbay/.cache/plugbay
COPY --from=build /out/plugbay /usr/local/bin/plugbay
COPY LICENSE-MIT LICENSE-APACHE /usr/share/licenses/plugbay/
USER 10001:10001
WORKDIR /home/plugbay
# The cache makes the first list fast: keep it in a volume.
VOLUME /home/plugbay/.cache/plugbay
ENTRYPOINT ["plugbay"]
CMD ["serve"]

FROM base AS runtimes
USER 0
RUN apk add --no-cache nodejs npm python3 uv git
USER 10001:10001

FROM base AS plugbay
