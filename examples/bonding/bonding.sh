#!/usr/bin/env bash
# Joins two network namespaces over two paths, one of 20 Mbit/s that loses 5 % and is 15 ms long, one of 10 Mbit/s and 40 ms,
# and carries ping and iperf3 over each alone and over both with raft. Then a realtime stream of 2 Mbit/s runs beside TCP over
# both, the faster path is taken down for 5 s, and comes back.
#
#   sudo examples/bonding/bonding.sh [--only tcp|outage] [seconds of iperf3, default 20]
#
# --only tcp: nothing but TCP over both; --only outage: nothing but what happens when the faster path goes.
#
# Exits 0 only if TCP over both has at least 0.85 of what the two paths deliver after their loss, neither TCP nor the realtime
# stream is without delivery for more than 200 ms when a path goes, and the latter loses less than 0.1 %, as far as they were measured.
#
# Needs root, and the packages iproute2, iputils-ping and iperf3. Everything happens inside the two namespaces, which are
# removed at the end, however that comes.
set -euo pipefail

name=bonding.sh
source "$(dirname "${BASH_SOURCE[0]}")/../namespaces.sh"
only=all
if [[ ${1:-} == --only ]]; then
  only=${2:-}
  [[ $only == tcp || $only == outage ]] || fail "--only is tcp or outage, not '$only'"
  shift 2
fi
seconds=${1:-20}

need_root
in_range seconds "$seconds" 2 600
for tool in ip tc ping iperf3; do
  command -v "$tool" >/dev/null || fail "$tool is missing; install iproute2, iputils-ping and iperf3"
done

ip netns add "$a"
ip netns add "$b"
rates=tbf
for path in '0 20' '1 10'; do
  read -r number mbit <<<"$path"
  join "path$number" "10.205.$number"
  for namespace in "$a" "$b"; do
    tc -n "$namespace" qdisc add dev "path$number" root tbf rate "${mbit}mbit" burst 16kb latency 50ms 2>/dev/null || rates=emulated
  done
done
# The stream ends before the nodes do: what is on its way then is not lost.
options=(--live-seconds $((seconds + 8)))
[[ $rates == tbf ]] || options+=(--emulated-rates)
mkdir "$work/tunnel" "$work/live"
node "$here/configure.mjs" "$work/tunnel" ${options[2]:+"${options[2]}"}
node "$here/configure.mjs" "$work/live" "${options[@]}"

# measure KIND: ping, unless only TCP is asked for, and TCP over the tunnel KIND, into loss_KIND, time_KIND, rate_KIND.
measure() {
  local pinging='200 pings, then '
  [[ $only == all ]] || pinging=''
  say "$1: $pinging$seconds s of TCP"
  start "$a" "$work/tunnel/a-$1.json"
  start "$b" "$work/tunnel/b-$1.json"
  if [[ $only == all ]]; then
    pings 10.206.0.2 200 0.02
    printf -v "loss_$1" '%s' "$ping_loss"
    printf -v "time_$1" '%s' "$round_trip"
  fi
  # The first two seconds are slow start.
  iperf 10.206.0.2 "$seconds" -O 2
  end_nodes
  read -r "rate_$1" _ <<<"$(goodput)"
}

# field FILE COMPONENT METRIC: a number of the summary that a run has printed.
field() {
  node -e '
    const { metrics } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
    console.log(metrics[process.argv[2]][process.argv[3]])
  ' "$work/$1.out" "$2" "$3"
}

# outage: a realtime stream of 2 Mbit/s beside TCP over both, while the faster path is down for 5 s.
outage() {
  say "both: a realtime stream of 2 Mbit/s, pings and $((seconds + 8)) s of TCP, the faster path down from second 4 to 9"
  start "$b" "$work/live/b-both.json"
  start "$a" "$work/live/a-both.json"
  (
    pings 10.206.0.2 $(((seconds + 6) * 50)) 0.02
    printf '%s %s\n' "$ping_loss" "$round_trip" >"$work/pings"
  ) &
  local pinging=$!
  jobs_running+=("$pinging")
  (
    sleep 4
    ip -n "$a" link set path0 down
    sleep 5
    ip -n "$a" link set path0 up
  ) &
  jobs_running+=("$!")
  iperf 10.206.0.2 $((seconds + 8))
  read -r rate_cut gap_cut <<<"$(goodput)"
  sleep 2
  wait "$pinging" || true
  read -r ping_cut time_cut <"$work/pings" || true
  end_nodes
  gap_live=$(($(field b-both watch gap_max | cut -d. -f1) / 1000000))
  sent_live=$(field a-both bond streams_1_input_packets)
  lost_live=$((sent_live - $(field b-both screen input_packets)))
  left_live=$(field a-both bond carriers_0_times_left)
  used_live=$(field a-both bond carriers_0_used)
  loss_live=$(node -p "((100 * $lost_live) / $sent_live).toFixed(3)")
}

if [[ $only == all ]]; then
  measure fast
  measure slow
fi
[[ $only == outage ]] || measure both
[[ $only == tcp ]] || outage

if [[ $only == all ]]; then
  printf '\n%-40s %12s %12s %12s\n' '' '20 Mbit/s,' '10 Mbit/s,' 'both,'
  printf '%-40s %12s %12s %12s\n' "rates by $rates" '5 %, 15 ms' '40 ms' 'by raft'
  printf '%-40s %10s %% %10s %% %10s %%\n' 'ping loss' "$loss_fast" "$loss_slow" "$loss_both"
  printf '%-40s %9s ms %9s ms %9s ms\n' 'ping round trip, mean' "${time_fast:--}" "${time_slow:--}" "${time_both:--}"
  printf '%-40s %12s %12s %12s\n' "TCP goodput, Mbit/s ($congestion, $seconds s)" "$rate_fast" "$rate_slow" "$rate_both"
fi
if [[ $only != tcp ]]; then
  printf '\nthe faster path down for 5 s:\n'
  printf '%-40s %s Mbit/s, %s ms without delivery at most\n' 'TCP beside the realtime stream' "$rate_cut" "$gap_cut"
  printf '%-40s %s %% lost, round trip %s ms on average\n' 'pings in the queue of TCP' "${ping_cut:--}" "${time_cut:--}"
  printf '%-40s %s of %s packets lost (%s %%), %s ms without delivery at most\n' \
    'realtime stream of 2 Mbit/s' "$lost_live" "$sent_live" "$loss_live" "$gap_live"
  printf '%-40s %s, %s\n' 'the faster path: times left, used at the end' "$left_live" "$used_live"
fi

# What was not measured has no fault.
share=1
if [[ $only != outage ]]; then
  share=$(node -p "($rate_both / 29).toFixed(2)")
  printf '\nTCP over both, %s Mbit/s, has %s of what the paths deliver after their loss (29 Mbit/s)\n' "$rate_both" "$share"
fi
node -e '
  const [share, gapLive, gapCut, loss] = process.argv.slice(1).map(Number)
  const faults = []
  if (!(share >= 0.85)) faults.push(`TCP over both has ${share} of what the paths deliver, less than 0.85`)
  if (!(gapLive <= 200)) faults.push(`the realtime stream was ${gapLive} ms without delivery, more than 200`)
  // iperf3 counts tenths of a second, whose ends are off by a millisecond or two.
  if (!(gapCut < 250)) faults.push(`TCP was ${gapCut} ms without delivery, more than 200`)
  if (!(loss < 0.1)) faults.push(`${loss} % of the realtime stream lost, not less than 0.1`)
  for (const fault of faults) console.error(fault)
  process.exit(faults.length > 0 ? 1 : 0)
' "$share" "${gap_live:-0}" "${gap_cut:-0}" "${loss_live:-0}"
