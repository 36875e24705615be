/** The man pages: one for the program and one for each of its commands, which man shows without a warning. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { manPages } from '../../src/cli/man-pages.ts'
import { createProgram } from '../../src/cli/program.ts'
import { scratch } from '../cli/cli.ts'
import { commandsOf } from '../cli/commands.ts'
import { has } from './commands.ts'

const program = await createProgram()
const pages = manPages(program, new Date('2026-01-31T23:00:00Z'))
const tops = program.commands.map((command) => command.name()).filter((name) => name !== 'complete')

describe('the man pages', () => {
  const directory = scratch()
  afterAll(() => directory.dispose())
  mkdirSync(join(directory.path, 'man1'))
  for (const [file, text] of pages) writeFileSync(join(directory.path, 'man1', file), text)
  const shown = (file: string): string =>
    spawnSync('man', ['-l', join(directory.path, 'man1', file)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '120', MAN_KEEP_FORMATTING: '', PAGER: 'cat' },
    }).stdout

  it('are one of the program and one of each command', () => {
    expect([...pages.keys()].sort()).toEqual(['penstock.1', ...tops.map((name) => `penstock-${name}.1`)].sort())
  })

  it.each([...pages.keys()])('%s names its date, the version, and every option of its commands', (file) => {
    const text = pages.get(file) as string
    expect(text).toMatch(/^\.TH PENSTOCK\S* 1 2026-01-31 "penstock \d+\.\d+\.\d+"/m)
    const plain = text.replaceAll('\\-', '-')
    const own = commandsOf(program).filter(
      ({ path }) =>
        path === file.slice('penstock-'.length, -2) || path.startsWith(`${file.slice('penstock-'.length, -2)} `),
    )
    for (const { path, command } of own) {
      for (const { long, hidden } of command.options) if (long && !hidden) expect(plain, path).toContain(long)
    }
  })

  it.skipIf(!has('man'))('are formatted by man without a warning, and read as they are written', () => {
    for (const file of pages.keys()) {
      const { status, stderr } = spawnSync(
        'man',
        ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', join(directory.path, 'man1', file)],
        {
          encoding: 'utf8',
          env: { ...process.env, LC_ALL: 'C.UTF-8', MANROFFSEQ: '' },
        },
      )
      expect({ file, status, stderr }).toEqual({ file, status: 0, stderr: '' })
    }
    const page = shown('penstock-fec.1')
    expect(page).toContain('penstock fec advise --loss 2% --rate 10M --packet 1200 --budget 30ms \\')
    expect(shown('penstock.1')).toMatch(/penstock-pipelines\(1\)\s+a node's pipelines/)
  })

  it.skipIf(!has('mandoc'))('pass the check of mandoc', () => {
    const files = [...pages.keys()].map((file) => join(directory.path, 'man1', file))
    const { status, stdout } = spawnSync('mandoc', ['-Tlint', '-Wwarning', ...files], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  })
})
