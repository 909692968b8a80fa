#!/bin/sh
# Validates the OpenAPI document of a real `plugbay serve --http`, and lets schemathesis try whether the gateway does what
# the document says: no 5xx, no status or body that it does not name. The gateway runs the sample servers, on loopback.
#
# Usage: tests-e2e/api.sh [--plugbay PATH] [--examples N]
#
# Exit code 1: the document is invalid, or the gateway does something else. 3: schemathesis is not installed.
. "$(dirname -- "$0")/common.sh"
need api
exec "$PLUGBAY_E2E_DIR/api/bin/python" "$here/api/run.py" "$@"
