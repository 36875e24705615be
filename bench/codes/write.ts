/** `npm run bench:codes`: simulates every code over every link and writes the tables of docs/choosing-a-code.md, its plots and their numbers. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { packageRoot } from '../../src/package-root.ts'
import { allCells, type Figure, SEED, TRAFFIC } from './cells.ts'
import { plots } from './plots.ts'
import { withTables } from './tables.ts'

const page = join(packageRoot(), 'docs/choosing-a-code.md')
const images = join(packageRoot(), 'docs/images/codes')

const started = performance.now()
const cells = allCells()
const packets = TRAFFIC.packets.toLocaleString('en-US')
console.log(`${cells.length} simulations of ${packets} packets on ${availableParallelism()} CPUs, seed ${SEED}`)
const pool = new Piscina({
  filename: fileURLToPath(new URL('./cell-thread.js', import.meta.url)),
  maxThreads: availableParallelism(),
})
const figures: Figure[] = await Promise.all(cells.map((cell) => pool.run(cell)))
await pool.close()

mkdirSync(images, { recursive: true })
writeFileSync(join(images, 'figures.json'), `[\n${figures.map((figure) => JSON.stringify(figure)).join(',\n')}\n]\n`)
for (const [name, svg] of plots(figures)) writeFileSync(join(images, name), svg)
writeFileSync(page, withTables(readFileSync(page, 'utf8'), figures))
console.log(`written in ${Math.round((performance.now() - started) / 1000)} s`)
