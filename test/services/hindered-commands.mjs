/**
 * What is told of a command that cannot be started, by the built code, as JSON: in the node's own directory, and in one that its user may not enter.
 * Run in a mount namespace of its own where something is missing that commands need.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RunCommands } from '../../dist/src/services/run-commands.js'

const directory = mkdtempSync(join(tmpdir(), 'penstock-commands-'))
mkdirSync(join(directory, 'closed'), { mode: 0 })

async function told(cwd) {
  const on_setup = [{ cmd: 'true', cwd, timeout: 0, policy: 'STOP_ON_ERROR' }]
  const handler = { on_setup, pre_start: [], post_start: [], pre_stop: [], post_stop: [] }
  const commands = new RunCommands({ handler, runId: 'r', pipelineId: 'p', directory, log: () => {} })
  return await commands.run('on_setup', new AbortController().signal).then(
    () => 'started',
    ({ message }) => message,
  )
}

const own = await told('')
// Its user is not root then.
process.seteuid(65_534)
const closed = await told('closed')
process.seteuid(0)
rmSync(directory, { recursive: true })
process.stdout.write(JSON.stringify({ own, closed }))
