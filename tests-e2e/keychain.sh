#!/bin/sh
# Keeps secrets in a real keychain: gnome-keyring on a D-Bus of its own, with a new home folder. The user's own keychain is
# not touched. The keychain is locked, stopped and killed meanwhile, and so is the bus. Prints a table of what happened.
#
# Usage: tests-e2e/keychain.sh [--program PATH]
#
# The program is the example `keychain` of plugbay-auth; without PATH it is built. This script installs what it needs:
# as root, and only if it is missing, Debian's packages dbus, gnome-keyring and libsecret-tools.
#
# Exit code 1: something went otherwise. 3: the packages are missing and cannot be installed.
. "$(dirname -- "$0")/common.sh"

canary='canary-of-the-keychain'
url_digest=b1b747a21dbf8cf4 # of https://mcp.example/mcp

main() {
    program=
    [ "${1:-}" != --program ] || program=$2
    require_packages
    if [ -z "$program" ]; then
        (cd "$here/.." && nice cargo build --quiet -p plugbay-auth --example keychain)
        program=$here/../target/debug/examples/keychain
    fi
    failures=0
    folder=$(mktemp -d)
    bus_pid='' service_pid=''
    trap clean EXIT
    trap 'exit 130' INT TERM
    prepare
    printf '%-52s %-9s %-6s %s\n' step result ms 'what the program says'
    without_service
    with_service
    locked
    stuck
    killed
    [ "$failures" -eq 0 ] || exit 1
}

require_packages() {
    command -v dbus-daemon >/dev/null && command -v gnome-keyring-daemon >/dev/null && command -v secret-tool >/dev/null &&
        return
    if ! { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends dbus gnome-keyring libsecret-tools >/dev/null 2>&1; }; then
        echo "skipped: dbus, gnome-keyring or libsecret-tools is missing" >&2
        exit 3
    fi
}

prepare() {
    unset GNOME_KEYRING_CONTROL SSH_AUTH_SOCK DISPLAY WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_DATA_HOME
    export HOME="$folder/home" XDG_RUNTIME_DIR="$folder/run"
    mkdir -m 700 "$HOME" "$XDG_RUNTIME_DIR" "$folder/logins"
    # A bus that can start no program.
    cat >"$folder/bare.conf" <<END
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:dir=$folder</listen><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
END
    # A login as a process without a keychain writes it.
    file=$folder/logins/sample-$url_digest.json
    cat >"$file" <<END
{"version":1,"server":"sample","current":"https://issuer.example","logins":{"https://issuer.example":{
"client_id":"plugbay","client_method":"none","client_source":"configured","token_endpoint":"https://issuer.example/token",
"resource":"https://mcp.example/mcp","scopes":[],"tokens":{"access":"$canary","issued_at":1800000000,"scopes":[]}}}}
END
    chmod 600 "$file"
}

without_service() {
    step 'no bus: none is found' 1000 none "$program" find
    start_bus --config-file="$folder/bare.conf"
    step 'a bus without a service: none is found' 1500 none "$program" find
    fails 'a bus without a service: the reason' 1500 'no program of this session' "$program" check
    step 'a bus without a service: saved to the file' 1500 '' "$program" save "$folder/logins" auto
    step 'its file has the secret' 1000 "$canary" grep -o "$canary" "$file"
    stop_bus
}

with_service() {
    start_bus --session
    step 'a service that was never used: none is found' 1500 none "$program" find
    fails 'a service that was never used: the reason' 1500 'no default collection' "$program" check
    unlock
    step 'an unlocked keychain is found' 1500 found "$program" find
    put small "$canary-small"
    step 'an entry is read' 5000 "$canary-small" "$program" get small
    step 'secret-tool sees it' 5000 "$canary-small" secret-tool lookup service plugbay username small
    put small "$canary-other"
    step 'an entry is replaced' 5000 "$canary-other" "$program" get small
    step 'there is still one' 5000 1 count canary service plugbay username small
    large=$(head -c 48000 /dev/urandom | base64 | tr -d '\n')
    put large "$large"
    step 'an entry of 64,000 characters is read' 5000 "$large" "$program" get large
    step 'an entry is removed' 5000 '' "$program" remove large
    step 'then there is none' 5000 'no entry' "$program" get large
    step 'removed once more' 5000 '' "$program" remove large
    step 'a login moves from its file to the keychain' 5000 '' "$program" save "$folder/logins" auto
    fails 'its file has no secret' 1000 '' grep -o "$canary" "$file"
    step 'secret-tool sees it' 5000 1 count '{' service plugbay
    step 'the login is loaded' 5000 "$canary" "$program" load "$folder/logins"
    fails 'a process without a bus: the remedy' 1000 'unlock your keychain' \
        env -u DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR=/nowhere "$program" load "$folder/logins"
    step 'the login moves to the file' 5000 '' "$program" save "$folder/logins" file
    step 'its file has the secret' 1000 "$canary" grep -o "$canary" "$file"
    step 'the keychain has no entry of it' 5000 0 count '{' service plugbay
    step 'and back' 5000 '' "$program" save "$folder/logins" keychain
}

locked() {
    dbus-send --session --print-reply --dest=org.freedesktop.secrets /org/freedesktop/secrets \
        org.freedesktop.Secret.Service.Lock array:objpath:/org/freedesktop/secrets/collection/login >/dev/null
    step 'a locked keychain: none is found' 1500 none "$program" find
    fails 'a locked keychain: read' 1500 'unlock your keychain' "$program" get small
    fails 'a locked keychain: write' 1500 'unlock your keychain' "$program" put small </dev/null
    fails 'a locked keychain: remove' 1500 'unlock your keychain' "$program" remove small
    fails 'a locked keychain: a login' 1500 'unlock your keychain' "$program" load "$folder/logins"
    fails 'the user was asked nothing' 1000 '' grep SystemPrompter "$folder/bus.log"
    unlock
    step 'unlocked again: the login is loaded' 5000 "$canary" "$program" load "$folder/logins"
}

stuck() {
    find_service
    kill -STOP "$service_pid"
    step 'a keychain that hangs: none is found' 3000 none "$program" find
    fails 'a keychain that hangs: a login' 7500 'not answered within 5s' "$program" load "$folder/logins"
    kill -CONT "$service_pid"
    step 'it goes on: the login is loaded' 5000 "$canary" "$program" load "$folder/logins"
    kill -STOP "$bus_pid"
    step 'a bus that hangs: none is found' 3000 none "$program" find
    fails 'a bus that hangs: a login' 7500 'not answered within 5s' "$program" load "$folder/logins"
    kill -CONT "$bus_pid"
    step 'it goes on: the login is loaded' 5000 "$canary" "$program" load "$folder/logins"
    # A process that refreshes a token while the keychain hangs: the token must not be lost.
    step 'the login moves to the file' 5000 '' "$program" save "$folder/logins" file
    kill -STOP "$service_pid"
    step 'a keychain that hangs: saved to the file' 7500 '' "$program" save "$folder/logins" auto
    kill -CONT "$service_pid"
    step 'its file has the secret' 1000 "$canary" grep -o "$canary" "$file"
    step 'back to the keychain' 5000 '' "$program" save "$folder/logins" auto
    fails 'its file has no secret' 1000 '' grep -o "$canary" "$file"
}

killed() {
    find_service
    kill -KILL "$service_pid"
    fails 'a killed keychain starts locked' 2500 'unlock your keychain' "$program" load "$folder/logins"
    find_service
    unlock
    step 'unlocked: the login is loaded' 5000 "$canary" "$program" load "$folder/logins"
    kill -KILL "$service_pid"
    stop_bus
    export DBUS_SESSION_BUS_ADDRESS="$old_address"
    step 'a killed bus: none is found' 1500 none "$program" find
    fails 'a killed bus: the reason' 1500 'the bus of this session does not answer' "$program" load "$folder/logins"
}

# step NAME LIMIT OUTPUT COMMAND...: it succeeds, says exactly this, in so many ms. The program asks twice, the second time
# for a second at most.
step() {
    name=$1 limit=$2 wanted=$3
    shift 3
    measure "$@"
    if [ "$code" -eq 0 ] && [ "$said" = "$wanted" ] && [ "$elapsed" -le "$limit" ]; then row ok; else row FAILED; fi
}

# fails NAME LIMIT TEXT COMMAND...: it fails with exit code 1, says this among other things, in so many ms.
fails() {
    name=$1 limit=$2 wanted=$3
    shift 3
    measure "$@"
    case $said in
    *"$wanted"*) if [ "$code" -eq 1 ] && [ "$elapsed" -le "$limit" ]; then row ok; else row FAILED; fi ;;
    *) row FAILED ;;
    esac
}

put() {
    printf %s "$2" >"$folder/secret"
    step "an entry is written ($1)" 5000 '' put_file "$1"
}

put_file() {
    "$program" put "$1" <"$folder/secret"
}

# count START ATTRIBUTE VALUE...: how many secrets start so.
count() {
    start=$1
    shift
    secret-tool search --all "$@" 2>/dev/null | grep -c "^secret = $start" || true
}

measure() {
    began=$(date +%s%N)
    code=0
    said=$("$@" 2>&1) || code=$?
    elapsed=$((($(date +%s%N) - began) / 1000000))
}

row() {
    [ "$1" = ok ] || failures=$((failures + 1))
    printf '%-52s %-9s %-6s %.100s\n' "$name" "$1" "$elapsed" "$said"
}

start_bus() {
    # In the foreground, so that its id is known.
    dbus-daemon "$@" --nofork --print-address=3 3>"$folder/address" >>"$folder/bus.log" 2>&1 &
    bus_pid=$!
    wait_for test -s "$folder/address"
    DBUS_SESSION_BUS_ADDRESS=$(head -n 1 "$folder/address")
    export DBUS_SESSION_BUS_ADDRESS
    old_address=$DBUS_SESSION_BUS_ADDRESS
}

stop_bus() {
    kill "$bus_pid"
    wait "$bus_pid" || true
    bus_pid='' service_pid=''
    rm -f "$folder/address"
    unset DBUS_SESSION_BUS_ADDRESS
}

# Creates the keychain or unlocks it. The daemon that has it unlocked takes the place of another.
unlock() {
    printf password | gnome-keyring-daemon --replace --unlock --components=secrets >/dev/null 2>&1
    wait_for "$program" check
}

# The process that has the name on the bus.
find_service() {
    wait_for ask_service
}

ask_service() {
    service_pid=$(dbus-send --session --print-reply=literal --dest=org.freedesktop.DBus /org/freedesktop/DBus \
        org.freedesktop.DBus.GetConnectionUnixProcessID string:org.freedesktop.secrets 2>/dev/null | awk '{ print $2 }')
    [ -n "$service_pid" ]
}

wait_for() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ]; then
            echo "keychain.sh: waited in vain for: $*" >&2
            exit 1
        fi
        sleep 0.1
    done
}

clean() {
    for pid in $service_pid $bus_pid; do
        kill -CONT "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
    done
    rm -rf "$folder"
}

main "$@"
