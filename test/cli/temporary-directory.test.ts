/** Demonstrations where TMPDIR names no directory to write to: they say so. */
import { afterAll, expect, it } from 'vitest'
import { penstock, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

it.each([['demo', '-d', '1s'], ['demo-hub'], ['demo-operate']])('%s names TMPDIR', async (...command) => {
  const missing = `${directory.path}/none`
  const file = directory.file('file', '')
  for (const [TMPDIR, why] of [
    [missing, 'there is no such directory, or none that takes others'],
    [file, 'it is no directory'],
  ] as const) {
    const { code, stderr } = await penstock(command, { env: { TMPDIR } })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `penstock: no directory can be made in ${TMPDIR}: ${why}; set TMPDIR to a directory that can be written to\n`,
    })
  }
})
