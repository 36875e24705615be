/** peer_router in a run with real sockets: a server behind it answers clients by their inner addresses, wherever they are. */
import { afterAll, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { Peer, startRun, testPool } from './running.ts'

const pool = testPool()
afterAll(() => pool.close())

/** An IPv4 packet of nothing but its header, between hosts of 10.0.0.0/24. */
const ip = (from: number, to: number) =>
  Uint8Array.of(0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to)

it('clients over IPv4 and IPv6 get what is for their inner addresses, and one that moves is followed', async () => {
  const [first, second, moved, server] = await Promise.all([Peer.open(), Peer.open(6), Peer.open(), Peer.open()])
  const peers = [first, second, moved, server]
  const run = await startRun(pool, {
    outside: { udp_local: { address: '[::]:0', output: 'net', input: 'out' } },
    router: { peer_router: { ingress: { input: 'net', output: 'in' }, egress: { input: 'reply', output: 'out' } } },
    inside: { udp: { local_address: '127.0.0.1:0', remote_address: server.address, input: 'in', output: 'reply' } },
  })
  try {
    await first.send(run.port('outside'), ip(1, 9))
    await second.send(run.port('outside'), ip(2, 9))
    await server.hears(2)
    await server.send(run.port('inside'), ip(9, 2), ip(9, 1), ip(9, 3))
    await Promise.all([first.hears(1), second.hears(1)])
    expect([first.heard[0]?.bytes[19], second.heard[0]?.bytes[19]]).toEqual([1, 2])
    await until(() => run.metrics().router.unroutable_packets === 1, 'what is for nobody is dropped')
    await moved.send(run.port('outside'), ip(1, 9))
    await server.hears(3)
    await server.send(run.port('inside'), ip(9, 1))
    await moved.hears(1)
    expect(moved.heard[0]?.bytes[19]).toBe(1)
    await until(() => run.metrics().router.moved_addresses === 1, 'the move is counted')
    expect([first.heard.length, second.heard.length]).toEqual([1, 1])
  } finally {
    await run.stop()
    for (const peer of peers) peer.close()
  }
})
