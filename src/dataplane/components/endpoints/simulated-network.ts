/** simulated_network: a port on a network in memory that joins components of all runs on the node. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { consumed, counter, created, drop, gauge } from '../../engine/metrics.ts'
import { Input, List, Mtu, Optional, Output, Text } from '../../engine/schema.ts'
import { oversizeUntaken, slotlessUntaken, UNTAKEN_METRICS, Untaken } from './untaken.ts'

const DEFAULT_MTU = 1500

export const simulatedNetwork = defineComponent({
  key: 'simulated_network',
  family: 'endpoints',
  summary: 'Joins components by a network in memory, within a run and between the runs of the node.',
  details:
    'Every packet at input is copied to all other simulated_networks with the same network_name, in this run or in any other that is running on this node; with ' +
    'receivers, to those components among them only. One without an output takes nothing. The network loses and delays nothing by itself, but each member has room for 1,024 packets ' +
    'that wait for its run: what comes on top is counted, as ring_full_packets where it was sent and as missed_packets where it did not arrive. ' +
    'A copy has the bytes and nothing else: no remote address, no client id. Packets that nobody is there for are counted as sent, as on a cable. ' +
    'Notifications stay in their run. In a simulation the network joins the runs that are simulated together.',
  config: Type.Object({
    input: Optional(Input('Connection point whose packets go into the network.')),
    output: Optional(Output('Connection point that gets what comes from the network.')),
    mtu: Optional(Mtu('i32', { default: DEFAULT_MTU })),
    network_name: Text('Name of the network.', { minLength: 1, maxLength: 256 }),
    receivers: List(
      Text('Name of a component.', { minLength: 1, maxLength: 256 }),
      'Names of the components that packets are copied to; empty: all others.',
      { minItems: 0, maxItems: 4096, default: [] },
    ),
  }),
  metrics: {
    received_packets: created('Packets that came from the network, those that were not taken among them.'),
    ...UNTAKEN_METRICS,
    missed_packets: drop('Packets that came while 1,024 were waiting, not taken.'),
    sent_packets: consumed('Packets handed to the network.'),
    oversize_packets: drop('Packets to send that were longer than the MTU.'),
    ring_full_packets: counter(
      'Copies that a member did not take because 1,024 packets were waiting there.',
      'packets',
    ),
    members: gauge('Members of the network that packets are copied to.', 'members'),
  },
  live: ['receivers'],
  decoupled: true,
  mtu: ({ mtu }) => mtu ?? DEFAULT_MTU,
  sends: ({ mtu }) => mtu ?? DEFAULT_MTU,
  check({ input, output }) {
    if (input !== undefined || output !== undefined) return []
    return [{ pointer: '', message: 'neither input nor output is set: set one of them, or both' }]
  },
  warn(_config, { comesBack }) {
    if (!comesBack) return []
    const what = 'what is received at output comes back here unchanged: every packet is answered with itself'
    return [{ pointer: '/input', message: `${what}, and two members that do so keep one packet going for ever` }]
  },
  create(config, { name, packets, io, log, metrics, outlets, batch: newBatch }) {
    const mtu = config.mtu ?? DEFAULT_MTU
    const outlet = outlets.output
    const received = newBatch()
    const oversize = oversizeUntaken(metrics, log, mtu)
    const slotless = slotlessUntaken(metrics, log, packets.slots)
    const missed = new Untaken(metrics.received_packets, metrics.missed_packets, () =>
      log(
        'WARN',
        'packets come in while 1,024 wait for the run and are dropped, counted as missed_packets: have them sent in smaller bursts',
        { metric: 'missed_packets' },
      ),
    )
    const port = io.network(
      { network: config.network_name, name, receivers: config.receivers, mtu, hears: outlet !== undefined },
      {
        readable() {
          slotless.add(port.receive(received))
          metrics.received_packets.add(received.length)
          outlet?.send(received)
        },
      },
    )
    return {
      input(batch) {
        const { handles, length } = batch
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (packets.length[packet] <= mtu) handles[kept++] = packet
          else packets.release(packet)
        }
        if (kept < length) metrics.oversize_packets.add(length - kept)
        batch.length = kept
        metrics.sent_packets.add(kept)
        metrics.ring_full_packets.add(port.send(batch))
      },
      active: () => outlet !== undefined,
      observe() {
        oversize.add(port.takeOversize())
        missed.add(port.takeMissed())
        metrics.members.set(port.reached)
      },
      reconfigure: (next) => port.sendTo(next.receivers),
      stop: () => port.close(),
    }
  },
})
