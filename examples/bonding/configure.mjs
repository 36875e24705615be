#!/usr/bin/env node
/**
 * Writes the configurations of the bonding example into a directory: for each end, a and b, one for each path alone and one for
 * raft over both.
 *
 *   configure.mjs DIRECTORY [--emulated-rates] [--live-seconds N]
 *
 * With --emulated-rates the rates of the paths are emulated too, where the kernel cannot limit them. With --live-seconds a realtime
 * stream of 2 Mbit/s flows from a to b beside the tunnel for that long.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { 'emulated-rates': { type: 'boolean' }, 'live-seconds': { type: 'string' } },
})
const [directory] = positionals
const liveSeconds = Number(values['live-seconds'] ?? 0)

const PATHS = [
  { name: 'fast', mbit: 20, loss: 0.05, delay: 15 },
  { name: 'slow', mbit: 10, loss: 0, delay: 40 },
]
/** Bytes of a UDP payload in a packet of 1,500 bytes, and what raft takes of them for its headers. */
const UDP_PAYLOAD = 1472
const RAFT_HEADERS = 36
const ENDS = ['a', 'b']

const tun = (end, mtu) => ({
  interface_name: 'bond0',
  ip: `10.206.0.${end === 'a' ? 1 : 2}`,
  output: 'leaving',
  input: 'arriving',
  mtu,
})

/** Packets of `from` cross an emulated path to the other end; what comes from there is `to`. */
function path(end, number, from, to) {
  const { name, mbit, loss, delay } = PATHS[number]
  const own = end === 'a' ? 1 : 2
  const address = (host) => `10.205.${number}.${host}:5000`
  const components = {
    [`${name} loss`]: {
      uniform_loss: { input: from, output: `${name} surviving`, loss_prob: loss, seed: 10 * number + own },
    },
    [`${name} distance`]: {
      delay_constant: { flows: [{ input: `${name} surviving`, output: `${name} delayed` }], delay },
    },
    [`${name} network`]: {
      udp: {
        local_address: address(own),
        remote_address: address(3 - own),
        input: values['emulated-rates'] ? `${name} limited` : `${name} delayed`,
        output: to,
        socket_buffer_size: 4194304,
      },
    },
  }
  if (values['emulated-rates']) {
    components[`${name} rate`] = {
      bandwidth_limit_constant: {
        flows: [{ input: `${name} delayed`, output: `${name} limited` }],
        bandwidth_limit_mbit: mbit,
        max_queue_size: Math.round(mbit * 4),
      },
    }
  }
  return components
}

const alone = (end, number) => ({ device: { tun: tun(end, UDP_PAYLOAD) }, ...path(end, number, 'leaving', 'arriving') })

function both(end) {
  const live = { stream_handle: 2, realtime_stream: { timeout: 250, delivery_policy: 'ON_ORDERED' } }
  const stream = { stream_handle: 1, transit_stream: { bonding_delay: 200, delivery_policy: 'ON_ORDERED' } }
  const components = { device: { tun: tun(end, UDP_PAYLOAD - RAFT_HEADERS) } }
  const streams = [{ ...stream, input: 'leaving', output: 'arriving' }]
  if (liveSeconds > 0 && end === 'a') {
    components.camera = {
      throughput_traffic_source: {
        output: 'live',
        throughput_mbit: 2,
        payload_size: 1000,
        duration_ms: liveSeconds * 1000,
        seed: 3,
      },
    }
    streams.push({ ...live, input: 'live' })
  } else {
    streams.push({ ...live, output: 'live' })
    components.watch = { observer: { input: 'live', output: 'watched' } }
    components.screen = { traffic_sink: { input: 'watched', mtu: 0 } }
  }
  const carriers = PATHS.map(({ name }, number) => {
    Object.assign(components, path(end, number, `${name} out`, `${name} in`))
    return { input: `${name} in`, output: `${name} out`, carrier_handle: number + 1, auto_bandwidth_estimation: true }
  })
  components.bond = { raft: { streams, carriers } }
  return components
}

for (const end of ENDS) {
  for (const [name, pipeline] of [
    ['fast', alone(end, 0)],
    ['slow', alone(end, 1)],
    ['both', both(end)],
  ]) {
    const config = { version: 1, engine_config: { pipeline } }
    writeFileSync(join(directory, `${end}-${name}.json`), `${JSON.stringify(config, null, 2)}\n`)
  }
}
