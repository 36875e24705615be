/** What a command line loads: to print help, or to refuse what was typed, nothing of what commands do. */
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import { penstock, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

/** What takes tens of milliseconds to load. */
const HEAVY = [
  'src/dataplane/components/registry.ts',
  'src/dataplane/native/native.ts',
  ...['jsep', 'lmdb', 'protobufjs', 'ws'].map((name) => `node_modules/${name}/`),
]

/** What is in a file that Node.js has loaded: of a bundle the sources that its map names, else itself. */
function sourcesOf(file: string): string[] {
  return existsSync(`${file}.map`) ? JSON.parse(readFileSync(`${file}.map`, 'utf8')).sources : [file]
}

/** What `penstock …args` loads of HEAVY, as Node.js counts the scripts of a process for a report on coverage, and what it exits with. */
async function run(args: string[]): Promise<{ code: number | null; loaded: string[] }> {
  const reports = mkdtempSync(join(directory.path, 'loaded-'))
  const { code } = await penstock(args, { env: { NODE_V8_COVERAGE: reports } })
  const scripts = readdirSync(reports)
    .flatMap((name): { url: string }[] => JSON.parse(readFileSync(join(reports, name), 'utf8')).result)
    .flatMap(({ url }) => (url.startsWith('file:') ? sourcesOf(fileURLToPath(url)) : []))
  expect(scripts.join()).toContain('src/cli/program.ts')
  return { code, loaded: HEAVY.filter((part) => scripts.some((script) => script.includes(part))) }
}

it.each([
  [['--help'], 0],
  [['help'], 0],
  [['nope'], 2],
  [['help', 'nope'], 2],
  [['completion', 'bash'], 0],
  [['complete', '--', ''], 0],
  [['run', '--help'], 0],
  [['simulate', '--help'], 0],
  [['simulate', 'no-duration.json'], 2],
  [['fec', 'advise', '--help'], 0],
  [['fec', 'advise', '--loss', 'much'], 2],
  [['impair', '--help'], 0],
  [['hub', 'key', '--help'], 0],
])('%j loads nothing of what commands do', async (args, code) => {
  expect(await run(args)).toEqual({ code, loaded: [] })
})

it('schema loads what the schema is made of', async () => {
  const { loaded } = await run(['schema'])
  expect(loaded).toEqual(expect.arrayContaining(['src/dataplane/components/registry.ts', 'node_modules/protobufjs/']))
})
