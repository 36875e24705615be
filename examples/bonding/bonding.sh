#!/usr/bin/env bash
# Joins two network namespaces over two paths, one of 20 Mbit/s that loses 5 % and is 15 ms long, one of 10 Mbit/s and 40 ms,
# and carries ping and iperf3 over each alone and over both with raft. Then a realtime stream of 2 Mbit/s runs beside TCP over
# both, the faster path is taken down for 5 s, and comes back.
#
#   sudo examples/bonding/bonding.sh [seconds of iperf3, default 20]
#
# Exits 0 only if TCP over both has at least 0.85 of what the two paths deliver after their loss, nothing is without delivery
# for more than 200 ms when a path goes, and the realtime stream loses less than 0.1 %.
#
# Needs root, and the packages iproute2, iputils-ping and iperf3. Everything happens inside the two namespaces, which are
# removed at the end, however that comes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
penstock="$here/../../bin/penstock.js"
seconds=${1:-20}
a="penstock-a-$$"
b="penstock-b-$$"
work=$(mktemp -d)
jobs_running=()
nodes_running=()

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "bonding.sh: $*"
  exit 1
}

end_jobs() {
  local pid tries
  for pid in "$@"; do kill -INT "$pid" 2>/dev/null || true; done
  for pid in "$@"; do
    for ((tries = 0; tries < 50; tries++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

end_nodes() {
  end_jobs "${nodes_running[@]}"
  nodes_running=()
}

cleanup() {
  trap - EXIT INT TERM HUP
  end_jobs "${jobs_running[@]}" "${nodes_running[@]}"
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

[[ $(id -u) == 0 ]] || fail 'must be root: it makes network namespaces and interfaces'
[[ $seconds =~ ^[0-9]+$ ]] && ((seconds >= 2 && seconds <= 600)) || fail 'the number of seconds is 2 to 600'
for tool in ip tc ping iperf3; do
  command -v "$tool" >/dev/null || fail "$tool is missing; install iproute2, iputils-ping and iperf3"
done

# The congestion control that most systems use takes loss for congestion; BBR, some systems' default, does not.
congestion=reno
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control && congestion=cubic

ip netns add "$a"
ip netns add "$b"
rates=tbf
for path in '0 20' '1 10'; do
  read -r number mbit <<<"$path"
  ip -n "$a" link add "path$number" type veth peer name "path$number" netns "$b"
  for end in "$a 1" "$b 2"; do
    read -r namespace host <<<"$end"
    ip -n "$namespace" link set lo up
    ip -n "$namespace" address add "10.205.$number.$host/24" dev "path$number"
    ip -n "$namespace" link set "path$number" up
    tc -n "$namespace" qdisc add dev "path$number" root tbf rate "${mbit}mbit" burst 16kb latency 50ms 2>/dev/null || rates=emulated
  done
done
options=(--live-seconds $((seconds + 12)))
[[ $rates == tbf ]] || options+=(--emulated-rates)
mkdir "$work/tunnel" "$work/live"
node "$here/configure.mjs" "$work/tunnel" ${options[2]:+"${options[2]}"}
node "$here/configure.mjs" "$work/live" "${options[@]}"

# start NAMESPACE CONFIG: a node's end of the tunnel; returns when it runs.
start() {
  local log="$work/$(basename "$2").log" tries
  rm -f "$log"
  ip netns exec "$1" node "$penstock" run "$work/$2.json" --output json >"$work/$(basename "$2").out" 2>"$log" &
  local pid=$!
  nodes_running+=("$pid")
  for ((tries = 0; tries < 100; tries++)); do
    grep -qs 'STATE.*running' "$log" && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  fail "the tunnel's end $2 did not start"
}

# iperf SECONDS OPTION…: TCP from a to b through the tunnel, as the receiver counts it, in $work/iperf.
iperf() {
  local server tries
  ip netns exec "$b" iperf3 -s -1 -J -i 0.1 >"$work/iperf" 2>&1 &
  server=$!
  jobs_running+=("$server")
  for ((tries = 0; tries < 50; tries++)); do
    ip netns exec "$b" ss -Hltn 'sport = :5201' | grep -q . && break
    sleep 0.1
  done
  ip netns exec "$a" timeout $(($1 + 60)) iperf3 -c 10.206.0.2 -C "$congestion" -t "$1" "${@:2}" >/dev/null || true
  wait "$server" || true
}

# figures of the last iperf: goodput in Mbit/s, and the longest time in which nothing came, ms.
goodput() {
  node -e '
    const { intervals } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
    const sums = intervals.map(({ sum }) => sum).filter(({ seconds }) => seconds > 0.05)
    const bytes = sums.reduce((total, { bytes }) => total + bytes, 0)
    const time = sums.reduce((total, { seconds }) => total + seconds, 0)
    let none = 0
    let gap = 0
    for (const { bytes, seconds } of sums) gap = Math.max(gap, (none = bytes === 0 ? none + seconds : 0))
    console.log(((bytes * 8) / time / 1e6).toFixed(2), Math.round(gap * 1000))
  ' "$work/iperf" 2>/dev/null || echo '0 0'
}

# pings COUNT INTERVAL: sets ping_loss (per cent) and round_trip (ms).
pings() {
  local summary
  summary=$(ip netns exec "$a" ping -q -c "$1" -i "$2" -s 200 -W 2 10.206.0.2) || true
  ping_loss=$(sed -nE 's/.* ([0-9.]+)% packet loss.*/\1/p' <<<"$summary")
  round_trip=$(sed -nE 's|^rtt .* = [0-9.]+/([0-9.]+)/.*|\1|p' <<<"$summary")
}

# measure KIND: ping and TCP over the tunnel KIND, into loss_KIND, time_KIND, rate_KIND.
measure() {
  say "$1: 200 pings, then $seconds s of TCP"
  start "$a" "tunnel/a-$1"
  start "$b" "tunnel/b-$1"
  pings 200 0.02
  # The first two seconds are slow start.
  iperf "$seconds" -O 2
  end_nodes
  printf -v "loss_$1" '%s' "$ping_loss"
  printf -v "time_$1" '%s' "$round_trip"
  read -r "rate_$1" _ <<<"$(goodput)"
}

measure fast
measure slow
measure both

# field FILE COMPONENT METRIC: a number of the summary that a run has printed.
field() {
  node -e '
    const { metrics } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
    console.log(metrics[process.argv[2]][process.argv[3]])
  ' "$work/$1.out" "$2" "$3"
}

say "both: a realtime stream of 2 Mbit/s, pings and $((seconds + 8)) s of TCP, the faster path down from second 4 to 9"
start "$b" live/b-both
start "$a" live/a-both
pings $(((seconds + 6) * 50)) 0.02 &
jobs_running+=("$!")
(
  sleep 4
  ip -n "$a" link set path0 down
  sleep 5
  ip -n "$a" link set path0 up
) &
jobs_running+=("$!")
iperf $((seconds + 8))
read -r rate_cut gap_cut <<<"$(goodput)"
sleep 2
end_nodes
gap_live=$(($(field b-both watch gap_max | cut -d. -f1) / 1000000))
sent_live=$(field a-both bond streams_1_input_packets)
lost_live=$((sent_live - $(field b-both screen input_packets)))
loss_live=$(node -p "((100 * $lost_live) / $sent_live).toFixed(3)")

printf '\n%-40s %12s %12s %12s\n' '' '20 Mbit/s,' '10 Mbit/s,' 'both,'
printf '%-40s %12s %12s %12s\n' "rates by $rates" '5 %, 15 ms' '40 ms' 'by raft'
printf '%-40s %10s %% %10s %% %10s %%\n' 'ping loss' "$loss_fast" "$loss_slow" "$loss_both"
printf '%-40s %9s ms %9s ms %9s ms\n' 'ping round trip, mean' "${time_fast:--}" "${time_slow:--}" "${time_both:--}"
printf '%-40s %12s %12s %12s\n' "TCP goodput, Mbit/s ($congestion, $seconds s)" "$rate_fast" "$rate_slow" "$rate_both"
printf '\nthe faster path down for 5 s:\n'
printf '%-40s %s Mbit/s, %s ms without delivery at most\n' 'TCP beside the realtime stream' "$rate_cut" "$gap_cut"
printf '%-40s %s of %s packets lost (%s %%), %s ms without delivery at most\n' \
  'realtime stream of 2 Mbit/s' "$lost_live" "$sent_live" "$loss_live" "$gap_live"

share=$(node -p "($rate_both / 29).toFixed(2)")
printf '\nTCP over both has %s of what the paths deliver after their loss (29 Mbit/s)\n' "$share"
node -e '
  const [share, gap, loss] = process.argv.slice(1).map(Number)
  const faults = []
  if (!(share >= 0.85)) faults.push(`TCP over both has ${share} of what the paths deliver, less than 0.85`)
  if (!(gap <= 200)) faults.push(`${gap} ms without delivery, more than 200`)
  if (!(loss < 0.1)) faults.push(`${loss} % of the realtime stream lost, not less than 0.1`)
  for (const fault of faults) console.error(fault)
  process.exit(faults.length > 0 ? 1 : 0)
' "$share" "$gap_live" "$loss_live"
