/** A round of the fuzzer in a process of its own, which a finding ends, and what is to be told of it. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './addon.mjs'

const script = join(root, 'test/sanitize/fuzz.mjs')
/** Files are made in the round's own directory, and none may be large. */
const LIMITED = 'ulimit -f 8192 && exec "$0" "$@"'
const NAMESPACE = ['unshare', '-n', 'sh', '-c', `ip link set lo up && ${LIMITED}`]

/** Whether rounds run in a network namespace of their own: only there they open TUN devices. Needs root, unshare and ip. */
export const isolated = spawnSync('unshare', [...NAMESPACE.slice(1), 'true']).status === 0

/** Runs one round; `failure` says what was found, `calls` is how often each function was called and did what it was asked. */
export function fuzzRound(env, { seed, threads, seconds, count = Number.POSITIVE_INFINITY }) {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-fuzz-'))
  const calls = join(directory, 'calls')
  writeFileSync(calls, '')
  const flags = { seed, threads, seconds, count, calls }
  const options = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])
  const devices = isolated ? ['--devices'] : []
  const node = [process.execPath, '--expose-gc', script, ...options, ...devices]
  const [program, ...rest] = isolated ? [...NAMESPACE, ...node] : ['sh', '-c', LIMITED, ...node]
  try {
    const child = spawnSync(program, rest, {
      cwd: directory,
      env: { ...process.env, ...env },
      encoding: 'utf8',
      timeout: Math.ceil(seconds + 60) * 1000,
      killSignal: 'SIGKILL',
    })
    const last = readFileSync(calls, 'utf8').replace(/[ \0]+\n/g, '\n')
    if (child.status !== 0) {
      const how = child.error?.message ?? child.signal ?? `exit code ${child.status}`
      return { failure: `${how}\nlast calls by thread:\n${last}\n${child.stdout}${child.stderr}`, calls: {} }
    }
    const { total, sanitized } = JSON.parse(child.stdout)
    return sanitized
      ? { calls: total }
      : { failure: 'the addon that was called is not the sanitized one', calls: total }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Adds the counts of one round to those of others. */
export function sum(total, calls) {
  for (const [name, [called, done]] of Object.entries(calls)) {
    total[name] ??= [0, 0]
    total[name][0] += called
    total[name][1] += done
  }
}
