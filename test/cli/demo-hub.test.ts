/** `npm run demo:hub`, as it is run: everything it promises is seen. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { penstock } from './cli.ts'

it('joins three nodes, sends traffic between two, loses one and has it back', { timeout: 60_000 }, async () => {
  const { code, stdout, stderr } = await penstock(['demo-hub'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const line of [
    /approves request 3 of west \w+ over the WebSocket/,
    /south {2}[\d,]+ datagrams came from north/,
    /streamNodes {2}north disconnected/,
    /a call for north: UNAVAILABLE/,
    /starts north again[\s\S]*streamNodes {2}north connected/,
    /south {2}[\d,]+ more datagrams came/,
    /all of it was seen/,
  ]) {
    expect(stdout).toMatch(line)
  }
})

it('says why a node of a demonstration cannot be started', () => {
  const module = pathToFileURL(join(packageRoot(), 'dist/src/cli/node-process.js'))
  const script = `
    import { openSync } from 'node:fs'
    import { NodeProcess } from '${module}'
    try { for (;;) openSync('/dev/null') } catch {}
    await NodeProcess.start().catch(({ message }) => console.log(message))
  `
  const limited = ['-c', 'ulimit -n 64 && exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', script]
  const { status, stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toBe(
    `the node did not start: spawn ${process.execPath} EMFILE (this process may open no more files: raise its limit, ulimit -n, or LimitNOFILE= of a systemd unit)\n`,
  )
})
