/** A socket whose kernel buffer is full: packets wait up to a bound, the rest is dropped and counted, sending resumes. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('./congestion.mjs', import.meta.url))
const SLOW = 'ip link set lo up && tc qdisc add dev lo root tbf rate 50mbit burst 20kb limit 10mb'
const possible = spawnSync('unshare', ['-n', 'sh', '-c', SLOW]).status === 0
if (!possible) console.warn('SKIPPED: the test of a full socket buffer needs root, unshare, tc and its tbf queue')

function flood(count: number): Record<string, number | boolean> {
  const command = ['-n', 'sh', '-c', `${SLOW} && exec "$@"`, 'sh', 'node', script, String(count)]
  return JSON.parse(execFileSync('unshare', command, { timeout: 25_000, encoding: 'utf8' }))
}

describe.skipIf(!possible)('a socket on a slow link', () => {
  it('loses nothing while the send queue holds what the kernel does not take', () => {
    const { send_blocked, ...rest } = flood(900)
    expect(send_blocked).toBeGreaterThan(0)
    expect(rest).toMatchObject({
      arrived: 900,
      ordered: true,
      sent_packets: 900,
      send_queue_drops: 0,
      queued_packets: 0,
    })
  })

  it('drops and counts what is over the bound, and sends the rest in order', () => {
    const { arrived, ordered, sent_packets, send_queue_drops, queued_packets } = flood(6000)
    expect(ordered).toBe(true)
    expect(arrived).toBe(sent_packets)
    expect(Number(sent_packets) + Number(send_queue_drops)).toBe(6000)
    expect(sent_packets).toBeGreaterThan(1024)
    expect(send_queue_drops).toBeGreaterThan(0)
    expect(queued_packets).toBe(0)
  })
})
