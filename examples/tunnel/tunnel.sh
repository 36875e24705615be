#!/usr/bin/env bash
# Joins two network namespaces by an encrypted tunnel through a link that loses 10 % of the packets each way and is 10 ms
# long, and carries ping and iperf3 through it, without and with error correction.
#
#   sudo examples/tunnel/tunnel.sh [seconds of iperf3, default 5] [pings, default 400]
#
# Needs root, and the packages iproute2, iputils-ping and iperf3, which are installed by apt-get when missing. Everything
# happens inside the two namespaces, which are removed at the end, however that comes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
penstock="$here/../../bin/penstock.js"
seconds=${1:-5}
pings=${2:-400}
a="penstock-a-$$"
b="penstock-b-$$"
work=$(mktemp -d)
jobs_running=()

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "tunnel.sh: $*"
  exit 1
}

end_jobs() {
  local pid tries
  for pid in "${jobs_running[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${jobs_running[@]}"; do
    for ((tries = 0; tries < 50; tries++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  jobs_running=()
}

cleanup() {
  trap - EXIT INT TERM HUP
  end_jobs
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[[ $(id -u) == 0 ]] || fail 'must be root: it makes network namespaces and interfaces'
[[ $seconds =~ ^[0-9]+$ ]] && ((seconds >= 1 && seconds <= 600)) || fail 'the number of seconds is 1 to 600'
[[ $pings =~ ^[0-9]+$ ]] && ((pings >= 1 && pings <= 10000)) || fail 'the number of pings is 1 to 10000'

missing=()
command -v ip >/dev/null || missing+=(iproute2)
command -v ping >/dev/null || missing+=(iputils-ping)
command -v iperf3 >/dev/null || missing+=(iperf3)
if ((${#missing[@]} > 0)); then
  command -v apt-get >/dev/null || fail "install first: ${missing[*]}"
  say "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >&2
fi

# The congestion control that most systems use takes loss for congestion; BBR, some systems' default, does not.
congestion=reno
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control && congestion=cubic

ip netns add "$a"
ip netns add "$b"
ip -n "$a" link add veth0 type veth peer name veth0 netns "$b"
for end in "$a 1" "$b 2"; do
  read -r namespace number <<<"$end"
  ip -n "$namespace" link set lo up
  ip -n "$namespace" address add "10.201.0.$number/24" dev veth0
  ip -n "$namespace" link set veth0 up
done

# start NAMESPACE CONFIG: a node's end of the tunnel; returns when it runs.
start() {
  local log="$work/$2.log" tries
  ip netns exec "$1" node "$penstock" run "$here/$2.json" --output json >"$work/$2.out" 2>"$log" &
  local pid=$!
  jobs_running+=("$pid")
  for ((tries = 0; tries < 100; tries++)); do
    grep -qs 'STATE.*running' "$log" && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  fail "the tunnel's end $2 did not start"
}

# measure KIND: sets ping_loss (per cent), round_trip (ms) and goodput (Mbit/s) of the tunnel KIND.
measure() {
  local kind=$1 summary server
  say "$kind: $pings pings, then $seconds s of TCP"
  start "$a" "a-$kind"
  start "$b" "b-$kind"
  summary=$(ip netns exec "$a" ping -q -c "$pings" -i 0.01 -s 200 -W 2 10.202.0.2) || true
  ping_loss=$(sed -nE 's/.* ([0-9.]+)% packet loss.*/\1/p' <<<"$summary")
  round_trip=$(sed -nE 's|^rtt .* = [0-9.]+/([0-9.]+)/.*|\1|p' <<<"$summary")
  ip netns exec "$b" iperf3 -s -1 >"$work/server" 2>&1 &
  server=$!
  jobs_running+=("$server")
  for ((tries = 0; tries < 50; tries++)); do
    ip netns exec "$b" ss -Hltn 'sport = :5201' | grep -q . && break
    sleep 0.1
  done
  # iperf3's own connection goes through the tunnel as well: give it time to come about, and an end.
  ip netns exec "$a" timeout $((seconds + 60)) iperf3 -c 10.202.0.2 -C "$congestion" -t "$seconds" -J >"$work/iperf" || true
  goodput=$(node -e '
    const { end } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
    console.log((end.sum_received.bits_per_second / 1e6).toFixed(2))
  ' "$work/iperf" 2>/dev/null || echo 0)
  end_jobs
}

measure plain
plain_loss=$ping_loss plain_time=$round_trip plain_goodput=$goodput
measure fec
fec_loss=$ping_loss fec_time=$round_trip fec_goodput=$goodput

printf '\n%-32s %14s %14s\n' '10 % loss and 10 ms each way' 'without FEC' 'with FEC'
printf '%-32s %12s %% %12s %%\n' "ping loss ($pings pings)" "$plain_loss" "$fec_loss"
printf '%-32s %11s ms %11s ms\n' 'ping round trip, mean' "${plain_time:--}" "${fec_time:--}"
printf '%-32s %8s Mbit/s %7s Mbit/s\n' "TCP goodput ($congestion, $seconds s)" "$plain_goodput" "$fec_goodput"
