/** Rows and columns of sources: which one a line lacks, over all small patterns. */
import { expect, it } from 'vitest'
import { NOT_ONE, ParityGrid } from './parity-grid.ts'

it('names the one source that a line lacks, over every pattern of a small block', () => {
  const [columns, rows] = [4, 3]
  const grid = new ParityGrid(columns, rows)
  let named = 0
  for (let there = 0; there < 1 << (columns * rows); there++) {
    grid.begin()
    for (let i = 0; i < columns * rows; i++) if ((there >> i) & 1) grid.fill(i)
    for (let line = 0; line < rows + columns; line++) {
      const own = [...Array(columns * rows).keys()].filter((i) => grid.rowOf(i) === line || grid.columnOf(i) === line)
      const missing = own.filter((i) => ((there >> i) & 1) === 0)
      expect(grid.missing[line]).toBe(missing.length)
      expect(grid.lastOf(line)).toBe(missing.length === 1 ? missing[0] : NOT_ONE)
      if (missing.length !== 1) continue
      named++
      expect([grid.rowOf(missing[0]), grid.columnOf(missing[0])]).toContain(grid.crossing(line, missing[0]))
      expect(grid.crossing(line, missing[0])).not.toBe(line)
    }
  }
  expect(named).toBeGreaterThan(1000)
})
