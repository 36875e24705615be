/** bench/native/build.sh, with a compiler of our own: two benches that begin at once both have their programs. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { temporaryDirectory } from '../api/running-node.ts'

/** Writes a program, and ends once a second build is compiling too. */
const GCC = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
printf '#!/bin/sh\\necho works\\n' > "$out"
chmod +x "$out"
touch "$TURNS/$PPID"
for i in $(seq 1000); do
  [ "$(ls "$TURNS" | wc -l)" -ge 2 ] && exit 0
  sleep 0.02
done
exit 1
`

test('started twice at once', async () => {
  const root = temporaryDirectory()
  const [native, tools, turns] = ['native', 'tools', 'turns'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ]
  for (const directory of [native, tools, turns]) mkdirSync(directory)
  copyFileSync(join(packageRoot(), 'bench/native/build.sh'), join(native, 'build.sh'))
  for (const name of ['probe.c', 'probe.h']) writeFileSync(join(native, name), '')
  for (const [name, text] of [
    ['gcc', GCC],
    ['apt-get', '#!/bin/sh\n'],
  ] as const) {
    writeFileSync(join(tools, name), text)
    chmodSync(join(tools, name), 0o755)
  }
  const env = { ...process.env, PATH: `${tools}:${process.env.PATH}`, TURNS: turns }
  const ends = await Promise.all(
    [1, 2].map(async () => {
      const build = spawn('bash', [join(native, 'build.sh')], { env, stdio: ['ignore', 'ignore', 'inherit'] })
      return (await once(build, 'exit'))[0]
    }),
  )
  expect(ends).toEqual([0, 0])
  expect(readdirSync(join(root, '.build'))).toEqual(['probe'])
  expect(execFileSync(join(root, '.build/probe'), { encoding: 'utf8' })).toBe('works\n')
})
