/** What of what was sent on a carrier counts as delivered and as lost. */
import { describe, expect, test } from 'vitest'
import { InFlight } from './in-flight.ts'

const MS = 1e6
/** As many as may be unreported. */
const MOST = 16_384

/** Packets of 100 bytes with the carrier sequences 0 to `count - 1`, one every ms, and what became of them. */
function sent(count: number): { inFlight: InFlight; fates: string[] } {
  const fates: string[] = []
  const inFlight = new InFlight({
    reported: (stream, sequence) => fates.push(`${stream}/${sequence} reported`),
    lost: (stream, sequence) => fates.push(`${stream}/${sequence} lost`),
  })
  for (let n = 0; n < count; n++) inFlight.add(1, 1000 + n, 100, n * MS)
  return { inFlight, fates }
}

describe('a packet counts as lost', () => {
  test('when three later ones are reported, not when two are', () => {
    const { inFlight, fates } = sent(6)
    for (const number of [1, 2]) inFlight.report(number, 50 * MS)
    expect(inFlight.loseOvertaken()).toBe(0)
    inFlight.report(5, 51 * MS)
    expect(inFlight.loseOvertaken()).toBe(1)
    expect(fates).toEqual(['1/1001 reported', '1/1002 reported', '1/1005 reported', '1/1000 lost'])
    expect([inFlight.packets, inFlight.bytes, inFlight.delivered]).toEqual([2, 200, 300])
  })

  test('when it was sent before the third from the last that are reported, however many are reported before that', () => {
    const { inFlight, fates } = sent(7)
    for (const number of [1, 3, 4, 6]) inFlight.report(number, 50 * MS)
    expect(inFlight.highestReported).toBe(6)
    expect(inFlight.loseOvertaken()).toBe(2)
    expect(fates.slice(4)).toEqual(['1/1000 lost', '1/1002 lost'])
    expect(inFlight.sentAtOf(5)).toBe(5 * MS)
  })

  test('when it was sent too long ago, and no later one does', () => {
    const { inFlight, fates } = sent(4)
    expect(inFlight.loseSentUntil(1 * MS)).toBe(2)
    expect(fates).toEqual(['1/1000 lost', '1/1001 lost'])
    expect(inFlight.oldestSentAt).toBe(2 * MS)
  })

  test('when there are as many after it as are known', () => {
    const { inFlight, fates } = sent(MOST + 1)
    expect(fates).toEqual(['1/1000 lost'])
    expect(inFlight.packets).toBe(MOST)
  })

  test('only once', () => {
    const { inFlight, fates } = sent(3)
    expect([inFlight.loseBefore(3), inFlight.loseBefore(3)]).toEqual([3, 0])
    expect(fates).toHaveLength(3)
    expect([inFlight.packets, inFlight.bytes, inFlight.oldestSentAt]).toEqual([0, 0, Number.POSITIVE_INFINITY])
  })
})

describe('a report', () => {
  test('is news once, and of nothing that was not sent or is forgotten', () => {
    const { inFlight, fates } = sent(MOST + 10)
    fates.length = 0
    expect([0, 9, MOST + 10, -1].map((number) => inFlight.report(number, 0))).toEqual([false, false, false, false])
    expect([inFlight.report(20, 0), inFlight.report(20, 0)]).toEqual([true, false])
    expect(fates).toEqual(['1/1020 reported'])
  })

  test('of what counted as lost says that it came, and it is delivered', () => {
    const { inFlight, fates } = sent(2)
    inFlight.loseBefore(1)
    inFlight.report(0, 30 * MS)
    expect(fates).toEqual(['1/1000 lost', '1/1000 reported'])
    expect([inFlight.delivered, inFlight.packets]).toEqual([100, 1])
  })

  test('tells of the newest packet what had been delivered when it was sent', () => {
    const { inFlight } = sent(1)
    inFlight.report(0, 30 * MS)
    inFlight.add(1, 1001, 100, 40 * MS)
    inFlight.report(1, 70 * MS)
    expect(inFlight.newest).toMatchObject({ sentAt: 40 * MS, delivered: 100, deliveredAt: 40 * MS, idle: false })
  })

  test('tells of one sent while others were in flight when the last of them had been delivered, and was sent', () => {
    const { inFlight } = sent(3)
    inFlight.report(1, 30 * MS)
    inFlight.add(1, 1003, 100, 40 * MS)
    inFlight.report(3, 70 * MS)
    expect(inFlight.newest).toMatchObject({ firstSentAt: 1 * MS, delivered: 100, deliveredAt: 30 * MS })
  })
})

test('what is sent after there was nothing more to send is idle until what was in flight then is delivered', () => {
  const { inFlight } = sent(2)
  inFlight.runDry(2 * MS)
  inFlight.add(1, 1002, 100, 3 * MS)
  for (const number of [0, 1]) inFlight.report(number, 30 * MS)
  inFlight.add(1, 1003, 100, 31 * MS)
  inFlight.report(2, 33 * MS)
  expect(inFlight.newest.idle).toBe(true)
  inFlight.report(3, 61 * MS)
  expect(inFlight.newest.idle).toBe(false)
})
