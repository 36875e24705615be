/** docs/choosing-a-code.md: its tables and plots are those of its numbers, the numbers those of the simulations, and they show what the page says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { allCells, type Cell, type Figure, figureOf, SEED, TRAFFIC } from '../../bench/codes/cells.ts'
import { plots } from '../../bench/codes/plots.ts'
import { withTables } from '../../bench/codes/tables.ts'
import { simulated } from '../../bench/support/coded-link.ts'
import { Deliveries } from '../../bench/support/deliveries.ts'
import { packageRoot } from '../../src/package-root.ts'

const read = (path: string): string => readFileSync(join(packageRoot(), 'docs', path), 'utf8')
const figures = JSON.parse(read('images/codes/figures.json')) as Figure[]
const page = read('choosing-a-code.md')

const named = ({ comparison, link, ...rest }: Figure | Cell): string => {
  const { code, settings, rate } = 'candidate' in rest ? rest.candidate : rest
  return [comparison, link.pattern, link.loss, code, settings, rate].join(' ')
}

describe('the page', () => {
  test('has the tables of the numbers', () => {
    expect(withTables(page, figures)).toBe(page)
  })

  test.each([...plots(figures)])('%s is the plot of the numbers', (name, svg) => {
    expect(read(`images/codes/${name}`)).toBe(svg)
    expect(page).toContain(`images/codes/${name}`)
  })

  test('has a number for every simulation', () => {
    expect(figures.map(named)).toEqual(allCells().map(named))
  })

  test('says what was simulated', () => {
    expect(page).toContain(`${TRAFFIC.packets.toLocaleString('en-US')} packets of 1,200 bytes at 10,000 packets/s`)
    expect(page).toContain(`seed ${SEED}`)
  })
})

describe('simulated again, the numbers are the same:', () => {
  const again = allCells().filter(
    ({ comparison, link, candidate }) =>
      link.pattern === 'bursty' &&
      link.loss === 0.05 &&
      comparison === 'overhead' &&
      candidate.rate === (candidate.code === 'sent twice' ? 1 : 0.1),
  )

  test('one of each code', () => {
    const codes = ['ideal', 'rely', 'reed_solomon', 'rlnc', 'kodok', 'parity_2d', 'sent twice']
    expect(again.map(({ candidate }) => candidate.code)).toEqual(codes)
  })

  test.each(again.map((cell) => [named(cell), cell] as const))('%s', (name, cell) => {
    expect(figureOf(cell)).toEqual(figures.find((figure) => named(figure) === name))
  })
})

describe('10 % overhead where 5 % are lost one by one, 1,200 bytes at 10,000 packets/s', () => {
  const traffic = { bytes: 1200, interval: 100_000, packets: 60_000, tail: 5000 }
  const over = (encoder: Record<string, Record<string, unknown>>, decoder: Record<string, Record<string, unknown>>) => {
    const { lost, delays, overhead } = simulated(
      traffic,
      encoder,
      { uniform_loss: { loss_prob: 0.05, seed: 7 } },
      decoder,
      7,
    )
    const [p99] = Deliveries.quantiles(delays, [0.99])
    return { lost: lost / traffic.packets, overhead, p99: p99 / 1e6 }
  }
  const rely = over(
    { rely_encoder: { repair_time_window: 100, repair_target_rate: 0.1 } },
    { rely_decoder: { release_in_order: true } },
  )

  test('rely loses less than 0.01 % and delivers 99 % in order within 30 ms', () => {
    expect(rely.overhead).toBeCloseTo(0.1, 3)
    expect(rely.lost).toBeLessThan(0.0001)
    expect(rely.p99).toBeLessThan(30)
  })

  test.each([
    [160, 16],
    [230, 23],
  ])('Reed-Solomon blocks of %i and %i delay as long or longer and lose more', (symbols, repair) => {
    const blocks = over({ reed_solomon_encoder: { symbols, repair } }, { reed_solomon_decoder: {} })
    expect(blocks.overhead).toBeCloseTo(0.1, 3)
    expect(blocks.p99).toBeGreaterThan(rely.p99)
    expect(blocks.lost).toBeGreaterThan(rely.lost)
  })
})
