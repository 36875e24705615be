#!/usr/bin/env bash
# Joins two clients by a relay, each in a network namespace of its own, and pings from either to the other through it; then
# a third client, whose id the relay does not list, tries the same.
#
#   sudo examples/relay/relay.sh [pings, default 20]
#
# Needs root, and the packages iproute2 and iputils-ping. Everything happens inside the namespaces, which are removed at the
# end, however that comes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
penstock="$here/../../bin/penstock.js"
pings=${1:-20}
nodes=(relay a b stranger)
work=$(mktemp -d)
declare -A running=()

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "relay.sh: $*"
  exit 1
}
namespace() { echo "penstock-$1-$$"; }
inside() { ip netns exec "$(namespace "$1")" "${@:2}"; }

# end NODE: returns when it is gone.
end() {
  local pid=${running[$1]} tries
  unset "running[$1]"
  kill -TERM "$pid" 2>/dev/null || true
  for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}

cleanup() {
  local node
  trap - EXIT INT TERM HUP
  for node in "${!running[@]}"; do end "$node"; done
  for node in "${nodes[@]}"; do ip netns del "$(namespace "$node")" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[[ $(id -u) == 0 ]] || fail 'must be root: it makes network namespaces and interfaces'
[[ $pings =~ ^[0-9]+$ ]] && ((pings >= 1 && pings <= 10000)) || fail 'the number of pings is 1 to 10000'
command -v ip >/dev/null || fail 'install first: iproute2'
command -v ping >/dev/null || fail 'install first: iputils-ping'

# cable CLIENT NUMBER: joins a client to the relay by a network of their own. It gets no route to the other clients'.
cable() {
  ip -n "$(namespace "$1")" link add veth0 type veth peer name "$1" netns "$(namespace relay)"
  ip -n "$(namespace "$1")" address add "10.204.$2.2/24" dev veth0
  ip -n "$(namespace "$1")" link set dev veth0 up
  ip -n "$(namespace relay)" address add "10.204.$2.1/24" dev "$1"
  ip -n "$(namespace relay)" link set dev "$1" up
}

# start NODE: runs its configuration in its namespace; returns when it runs.
start() {
  local log="$work/$1.log" tries
  ip netns exec "$(namespace "$1")" node "$penstock" run "$here/$1.json" --output json >"$work/$1.out" 2>"$log" &
  local pid=$!
  running[$1]=$pid
  for ((tries = 0; tries < 200; tries++)); do
    grep -qs 'STATE.*running' "$log" && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  fail "$1 did not start"
}

# meet: returns when either client reaches the other. The relay knows where a client is once it has heard it.
meet() {
  local tries
  for ((tries = 0; tries < 20; tries++)); do
    inside b ping -q -c 1 -W 1 10.205.0.1 >/dev/null && inside a ping -q -c 1 -W 1 10.205.0.2 >/dev/null && return
  done
  fail 'the clients do not reach each other'
}

# answered NODE ADDRESS: prints how many of the pings, which are as long as the device's MTU, are answered.
answered() {
  { inside "$1" ping -q -c "$pings" -i 0.05 -W 2 -M do -s 1252 "$2" || true; } | sed -nE 's/.* ([0-9]+) received.*/\1/p'
}

# metric NODE COMPONENT METRIC: prints what a node that has ended counted.
metric() {
  node -e '
    const [, file, component, metric] = process.argv
    console.log(JSON.parse(require("node:fs").readFileSync(file, "utf8")).metrics[component][metric])
  ' "$work/$1.out" "$2" "$3"
}

for node in "${nodes[@]}"; do
  ip netns add "$(namespace "$node")"
  ip -n "$(namespace "$node")" link set dev lo up
done
cable a 1
cable b 2
cable stranger 3

say "a relay, two clients and a stranger: $pings pings from each"
for node in "${nodes[@]}"; do start "$node"; done
meet
a=$(answered a 10.205.0.2)
b=$(answered b 10.205.0.1)
stranger=$(answered stranger 10.205.0.1)
# The relay ends last, when it has heard all that the others sent.
for node in stranger b a relay; do end "$node"; done

row() { printf '%-56s %s\n' "$@"; }
row 'a pings b' "$a of $pings answered"
row 'b pings a' "$b of $pings answered"
row 'the stranger pings a' "$stranger of $pings answered"
row 'datagrams the stranger sent' "$(metric stranger network sent_packets)"
row 'relay: lookup/unlisted_client_packets' "$(metric relay lookup unlisted_client_packets)"
row 'relay: lookup/known_clients' "$(metric relay lookup known_clients)"
row 'relay: decrypt/authentication_failures' "$(metric relay decrypt authentication_failures)"
