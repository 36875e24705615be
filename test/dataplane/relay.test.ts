/** A relay in a thread with real sockets: clients known by their ids reach each other, and one that moves is followed. */
import { afterAll, expect, it } from 'vitest'
import { native } from '../../src/dataplane/native/native.ts'
import { Peer, startRun, testPool } from './running.ts'

const pool = testPool()
afterAll(() => pool.close())

/** What client `id` sends to the address 10.0.0.`to`. */
function packet(id: number, to: number, text: string): Buffer {
  const bytes = Buffer.alloc(24)
  bytes.writeUInt32BE(id)
  bytes[4] = 0x45
  bytes.set([10, 0, 0, to], 20)
  bytes.writeUInt16BE(20 + text.length, 6)
  return Buffer.concat([bytes, Buffer.from(text)])
}

it('carries packets between clients by their routes, to where each was heard last', async () => {
  const before = native.openDescriptors()
  const run = await startRun(pool, {
    net: { udp_local: { address: '127.0.0.1:0', input: 'toNetwork', output: 'fromNetwork' } },
    relay: {
      relay_network_lookup: {
        network: { input: 'fromNetwork', output: 'toNetwork' },
        client: { input: 'routed', output: 'fromClients' },
        client_id: [1, 4294967295],
      },
    },
    fabric: {
      relay_routing_fabric: {
        input: 'fromClients',
        output: 'routed',
        fabric_type: 'IP',
        routes: [
          { client_id: 1, route: '10.0.0.1' },
          { client_id: 4294967295, route: '10.0.0.2/31' },
        ],
      },
    },
  })
  const [one, two, moved] = [await Peer.open(), await Peer.open(), await Peer.open()]
  const port = run.port('net')
  try {
    await two.send(port, packet(4294967295, 2, 'here I am'))
    await two.hears(1)
    await one.send(port, packet(1, 2, 'to two'))
    await two.hears(2)
    expect(two.heard[1]?.bytes).toEqual(packet(4294967295, 2, 'to two'))
    await two.send(port, packet(4294967295, 1, 'to one'))
    await one.hears(1)
    expect(one.heard[0]?.bytes).toEqual(packet(1, 1, 'to one'))
    await moved.send(port, packet(4294967295, 3, 'moved'))
    await moved.hears(1)
    await one.send(port, packet(1, 3, 'to where it is now'), packet(2, 3, 'of nobody'), packet(1, 9, 'to nobody'))
    await moved.hears(2)
    expect(moved.heard[1]?.text).toContain('to where it is now')
    expect(two.heard).toHaveLength(2)
  } finally {
    await run.stop()
    for (const peer of [one, two, moved]) peer.close()
  }
  expect(run.metrics().relay).toMatchObject({ unlisted_client_packets: 1, known_clients: 2, unknown_client_packets: 0 })
  expect(run.metrics().fabric?.unroutable_packets).toBe(1)
  expect(native.openDescriptors()).toBe(before)
})
