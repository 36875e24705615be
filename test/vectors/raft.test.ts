/** raft.json: an end makes exactly these packets, and another end gives the payloads though some of them are lost. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { dialogue, heardAlone, type RaftVectors } from './raft.ts'

const file = new URL('raft.json', import.meta.url)
if (process.env.PENSTOCK_WRITE_VECTORS) writeFileSync(file, `${JSON.stringify(dialogue(), null, 2)}\n`)
const vectors = JSON.parse(readFileSync(file, 'utf8')) as RaftVectors

test('an end makes the packets', () => {
  expect(dialogue()).toEqual(vectors)
})

test('there are data, whole and in pieces, repairs, reports, probes and answers among them', () => {
  const kinds = new Set(vectors.packets.map(({ hex }) => hex.slice(0, 2)))
  expect([...kinds].sort()).toEqual(['d0', 'd1', 'd2', 'd3', 'd4'])
  const data = vectors.packets.filter(({ hex }) => hex.startsWith('d0'))
  expect(data.some(({ lost }) => lost)).toBe(true)
  // First piece, last piece, and both, by the two highest bits.
  const pieces = new Set(data.map(({ hex }) => Number.parseInt(hex.slice(52, 54), 16) >>> 6))
  expect([...pieces].sort()).toEqual([1, 2, 3])
})

test('the payloads come out of the packets that are not lost, by another end', () => {
  expect(heardAlone(vectors)).toEqual(vectors.delivered)
  expect(vectors.delivered.length).toBeGreaterThan(vectors.payloads.length * 0.9)
  expect(vectors.delivered.length).toBeGreaterThan(
    vectors.payloads.length - vectors.packets.filter(({ lost }) => lost).length,
  )
  expect(vectors.payloads).toEqual(expect.arrayContaining(vectors.delivered))
})
