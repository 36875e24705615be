/** relay_routing_fabric: finds the client that a packet's destination is routed to. */
import { type Static, Type } from '@sinclair/typebox'
import { IpHeader } from '../../codes/ip-header.ts'
import { masked, type Prefix, PrefixTable } from '../../codes/prefix-table.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import { drop } from '../../engine/metrics.ts'
import { Enumeration, Input, List, Output, Text, Uint32 } from '../../engine/schema.ts'
import { isV4, parseCidr } from './cidr.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  routes: List(
    Type.Object({
      client_id: Uint32('Id of the client behind which the network is.'),
      route: Text('Network, as 10.1.0.0/16 or 2001:db8::/48, or one address.', { maxLength: 49 }),
    }),
    'Which networks are behind which clients; the longest prefix counts.',
    { minItems: 0 },
  ),
  fabric_type: Enumeration('What the routes are of.', 'RelayRoutingFabricType', { IP: 0 }),
})

type Config = Static<typeof config>

function faultsOf({ routes }: Config): Fault[] {
  const first = new Map<string, number>()
  return routes.flatMap(({ route }, i) => {
    const pointer = `/routes/${i}/route`
    const prefix = parseCidr(route)
    if (!prefix) {
      return [{ pointer, message: `"${route}" is no network: write 10.1.0.0/16, 2001:db8::/48 or one address` }]
    }
    const same = `${masked(prefix)}/${prefix.bits}`
    const other = first.get(same)
    if (other === undefined) first.set(same, i)
    if (other === undefined) return []
    const message = `"${route}" is the network of /routes/${other} too; a network is behind one client, so leave one of them out`
    return [{ pointer, message }]
  })
}

/** The routes of one version of IP: `words` 32-bit words an address. */
class Routes {
  private readonly table: PrefixTable
  private readonly clients: Float64Array

  constructor(words: 1 | 4, { routes }: Config) {
    const own = routes
      .map(({ route, client_id }) => ({ prefix: parseCidr(route) as Prefix, client_id }))
      .filter(({ prefix }) => isV4(prefix) === (words === 1))
    this.table = new PrefixTable(
      words,
      own.map(({ prefix }) => prefix),
    )
    this.clients = Float64Array.from(own, ({ client_id }) => client_id)
  }

  /** The client that `address` is behind, -1 for none. */
  clientOf(address: Uint32Array): number {
    const route = this.table.find(address)
    return route < 0 ? -1 : this.clients[route]
  }
}

export const relayRoutingFabric = defineComponent({
  key: 'relay_routing_fabric',
  family: 'routing',
  summary:
    'Annotates every IP packet with the id of the client that its destination is routed to, for relay_network_lookup.',
  details:
    'Each packet is an IPv4 or IPv6 packet, as from tun or from a client. Among the routes that its destination is in, the one with the longest ' +
    'prefix counts. Bits of a route behind its prefix length mean nothing (10.1.2.3/8 is 10.0.0.0/8). What no route fits is dropped.',
  config,
  metrics: {
    unroutable_packets: drop('Packets dropped because no route has their destination in it.'),
    malformed_packets: drop('Packets dropped because they are not IP packets.'),
  },
  live: ['routes'],
  alters: true,
  check: faultsOf,
  create(config, { packets, outlets, metrics }) {
    const header = new IpHeader()
    let v4 = new Routes(1, config)
    let v6 = new Routes(4, config)
    return {
      input(batch) {
        const { handles, length } = batch
        const { view, client } = packets
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const isIp = header.read(view, packets.offset[packet], packets.length[packet])
          const routes = header.version === 4 ? v4 : v6
          const id = isIp ? routes.clientOf(header.destination) : -1
          if (id >= 0) {
            client[packet] = id
            handles[kept++] = packet
          } else {
            packets.release(packet)
            const reason = isIp ? metrics.unroutable_packets : metrics.malformed_packets
            reason.add(1)
          }
        }
        batch.length = kept
        outlets.output.send(batch)
      },
      reconfigure(next) {
        v4 = new Routes(1, next)
        v6 = new Routes(4, next)
      },
    }
  },
})
