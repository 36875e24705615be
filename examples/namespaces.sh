# What examples in network namespaces share: sourced by scripts that have set `name`, their own, for messages. It makes the names of two
# namespaces, `a` and `b`, and the directory `work`, and sees to it that both namespaces, `work` and what runs end with the script.

here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
penstock="$here/../../bin/penstock.js"
a="penstock-a-$$"
b="penstock-b-$$"
work=$(mktemp -d)
jobs_running=()
nodes_running=()

# The congestion control that most systems use takes loss for congestion; BBR, some systems' default, does not.
congestion=reno
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control && congestion=cubic

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$name: $*"
  exit 1
}

# end_jobs PID…: interrupts them, and kills those that go on for 20 s.
end_jobs() {
  local pid tries
  for pid in "$@"; do kill -INT "$pid" 2>/dev/null || true; done
  for pid in "$@"; do
    for ((tries = 0; tries < 200; tries++)); do
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

# need_root: fails where the script cannot make namespaces.
need_root() {
  [[ $(id -u) == 0 ]] || fail 'must be root: it makes network namespaces and interfaces'
}

# in_range WHAT NUMBER LEAST MOST: fails unless NUMBER is one within.
in_range() {
  [[ $2 =~ ^[0-9]+$ ]] && (($2 >= $3 && $2 <= $4)) || fail "the number of $1 is $3 to $4"
}

# join DEVICE NETWORK: a pair of interfaces between a (NETWORK.1) and b (NETWORK.2).
join() {
  local namespace host
  ip -n "$a" link add "$1" type veth peer name "$1" netns "$b"
  while read -r namespace host; do
    ip -n "$namespace" link set lo up
    ip -n "$namespace" address add "$2.$host/24" dev "$1"
    ip -n "$namespace" link set "$1" up
  done <<<"$a 1"$'\n'"$b 2"
}

# start NAMESPACE FILE: a node's end of the tunnel with the configuration FILE, whose summary goes to `work`; returns when it runs.
start() {
  local run log tries
  run="$work/$(basename "$2" .json)"
  log="$run.log"
  rm -f "$log"
  ip netns exec "$1" node "$penstock" run "$2" --output json >"$run.out" 2>"$log" &
  local pid=$!
  nodes_running+=("$pid")
  for ((tries = 0; tries < 300; tries++)); do
    grep -qs 'STATE.*running' "$log" && return
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  fail "the tunnel's end $2 did not start"
}

# pings ADDRESS COUNT INTERVAL: from a; sets ping_loss (per cent) and round_trip (ms).
pings() {
  local summary
  summary=$(ip netns exec "$a" ping -q -c "$2" -i "$3" -s 200 -W 2 "$1") || true
  ping_loss=$(sed -nE 's/.* ([0-9.]+)% packet loss.*/\1/p' <<<"$summary")
  round_trip=$(sed -nE 's|^rtt .* = [0-9.]+/([0-9.]+)/.*|\1|p' <<<"$summary")
}

# iperf ADDRESS SECONDS OPTION…: TCP from a to b; what the receiver tells goes to $work/iperf. Its own connection goes through the tunnel as
# well: it has time to come about, and an end.
iperf() {
  local server tries
  ip netns exec "$b" iperf3 -s -1 -J -i 0.1 >"$work/iperf" 2>&1 &
  server=$!
  jobs_running+=("$server")
  for ((tries = 0; tries < 50; tries++)); do
    ip netns exec "$b" ss -Hltn 'sport = :5201' | grep -q . && break
    sleep 0.1
  done
  ip netns exec "$a" timeout $(($2 + 60)) iperf3 -c "$1" -C "$congestion" -t "$2" "${@:3}" >/dev/null || true
  # A client that never came leaves a server that waits for it.
  for ((tries = 0; tries < 50; tries++)); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  end_jobs "$server"
}

# goodput: of the last iperf without what -O omits, in Mbit/s, and the longest time in which nothing came, ms.
goodput() {
  node -e '
    const { intervals } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
    const sums = intervals.map(({ sum }) => sum).filter(({ omitted, seconds }) => !omitted && seconds > 0.05)
    const bytes = sums.reduce((total, { bytes }) => total + bytes, 0)
    const time = sums.reduce((total, { seconds }) => total + seconds, 0)
    let none = 0
    let gap = 0
    for (const { bytes, seconds } of sums) gap = Math.max(gap, (none = bytes === 0 ? none + seconds : 0))
    console.log(((bytes * 8) / time / 1e6).toFixed(2), Math.round(gap * 1000))
  ' "$work/iperf" 2>/dev/null || echo '0 0'
}
