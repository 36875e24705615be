#!/usr/bin/env bash
# Joins two network namespaces by an encrypted tunnel through a link that loses 10 % of the packets each way and is 10 ms
# long, and carries ping and iperf3 through it, without and with error correction.
#
#   sudo examples/tunnel/tunnel.sh [seconds of iperf3, default 5] [pings, default 400]
#
# Needs root, and the packages iproute2, iputils-ping and iperf3, which are installed by apt-get when missing. Everything
# happens inside the two namespaces, which are removed at the end, however that comes.
set -euo pipefail

name=tunnel.sh
source "$(dirname "${BASH_SOURCE[0]}")/../namespaces.sh"
seconds=${1:-5}
pings=${2:-400}

need_root
in_range seconds "$seconds" 1 600
in_range pings "$pings" 1 10000

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

ip netns add "$a"
ip netns add "$b"
join veth0 10.201.0

# measure KIND: ping and TCP over the tunnel KIND, into loss_KIND, time_KIND, rate_KIND.
measure() {
  say "$1: $pings pings, then $seconds s of TCP"
  start "$a" "$here/a-$1.json"
  start "$b" "$here/b-$1.json"
  pings 10.202.0.2 "$pings" 0.01
  iperf 10.202.0.2 "$seconds"
  end_nodes
  printf -v "loss_$1" '%s' "$ping_loss"
  printf -v "time_$1" '%s' "$round_trip"
  read -r "rate_$1" _ <<<"$(goodput)"
}

measure plain
measure fec

printf '\n%-32s %14s %14s\n' '10 % loss and 10 ms each way' 'without FEC' 'with FEC'
printf '%-32s %12s %% %12s %%\n' "ping loss ($pings pings)" "$loss_plain" "$loss_fec"
printf '%-32s %11s ms %11s ms\n' 'ping round trip, mean' "${time_plain:--}" "${time_fec:--}"
printf '%-32s %8s Mbit/s %7s Mbit/s\n' "TCP goodput ($congestion, $seconds s)" "$rate_plain" "$rate_fec"
