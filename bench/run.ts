/** `npm run bench [-- NAME …]`: runs the benches, prints the table, writes bench/results.json. */
import { readdirSync, writeFileSync } from 'node:fs'
import { cpus, release } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../src/package-root.ts'
import { type Bench, type BenchResult, table } from './measure.ts'

const here = dirname(fileURLToPath(import.meta.url))
const all = readdirSync(here)
  .filter((file) => file.endsWith('.js') && !['run.js', 'measure.js'].includes(file))
  .map((file) => file.slice(0, -3))
const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !all.includes(name))
if (unknown.length > 0) {
  console.error(`no bench "${unknown.join('", "')}"; there are: ${all.join(', ')}`)
  process.exit(2)
}
const machine = `${cpus()[0]?.model ?? 'unknown CPU'} × ${cpus().length}, Linux ${release()}, Node ${process.version}`
console.log(`${machine}\n`)
const results: BenchResult[] = []
for (const name of asked.length > 0 ? asked : all) {
  const { bench } = (await import(`./${name}.js`)) as { bench: Bench }
  const result = await bench()
  results.push(result)
  console.log(`${table(result)}\n`)
}
writeFileSync(join(packageRoot(), 'bench/results.json'), `${JSON.stringify({ machine, results }, null, 2)}\n`)
