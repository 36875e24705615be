/**
 * The processes of a run, found by what their environment says of it (proc_pid_environ(5)), with the sessions they are in: however often
 * they forked and whoever their parent is now, without a list that a killed node would not have written, and never a stranger that has
 * a number which one of them had.
 */
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

/** The environment variable that names the run a process belongs to. */
export const RUN_VARIABLE = 'PENSTOCK_RUN_ID'

/** How long processes have between SIGTERM and SIGKILL. */
const TERM_GRACE_MS = 1_000
/** How long killed processes may take to be gone; what the kernel holds longer is left to it. */
const KILL_WAIT_MS = 2_000
/** Between two looks at whether they are gone. */
const LOOK_MS = 20

interface Process {
  readonly pid: number
  readonly session: number
  /** Clock ticks between the start of the system and that of the process: with its number it is unmistakable. */
  readonly startTime: string
}

/**
 * Ends every process of `runs`: SIGTERM, after a second SIGKILL, again for what was forked meanwhile. Resolves with how many there were
 * once they are gone, or would not go. Processes of other users and those that have given themselves another environment and another session are not found.
 * Rejects where the process has no descriptor left to look for them.
 */
export async function endProcesses(runs: ReadonlySet<string>): Promise<number> {
  const seen = new Set<string>()
  const signalAll = (found: readonly Process[], signal: NodeJS.Signals) => {
    for (const process of found) {
      seen.add(`${process.pid} ${process.startTime}`)
      signalTo(process, signal)
    }
  }
  let found = await processesOf(runs)
  signalAll(found, 'SIGTERM')
  const began = performance.now()
  while (found.length > 0 && performance.now() - began < TERM_GRACE_MS + KILL_WAIT_MS) {
    await pause(LOOK_MS)
    found = await processesOf(runs)
    if (performance.now() - began >= TERM_GRACE_MS) signalAll(found, 'SIGKILL')
  }
  return seen.size
}

async function processesOf(runs: ReadonlySet<string>): Promise<Process[]> {
  const numbers = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const own = statOf(process.pid)?.session
  const all = await Promise.all(
    numbers.map(async (pid) => {
      const stat = pid === process.pid ? undefined : statOf(pid)
      return stat === undefined ? [] : [{ ...stat, isOfRun: await isOfRun(pid, runs) }]
    }),
  )
  const processes = all.flat()
  const sessions = new Set(processes.filter(({ isOfRun }) => isOfRun).map(({ session }) => session))
  return processes.filter(({ isOfRun, session }) => isOfRun || (session !== own && sessions.has(session)))
}

async function isOfRun(pid: number, runs: ReadonlySet<string>): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(unlessBlind(''))
  return environment
    .split('\0')
    .some((entry) => entry.startsWith(`${RUN_VARIABLE}=`) && runs.has(entry.slice(RUN_VARIABLE.length + 1)))
}

/** Gives `value` for a process that is gone or another user's; one that is not seen for want of descriptors may well be there. */
function unlessBlind<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'EMFILE' || error.code === 'ENFILE') throw error
    return value
  }
}

/** What proc_pid_stat(5) says of a process; undefined when it is gone, or a zombie. */
function statOf(pid: number): Process | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch (error) {
    return unlessBlind(undefined)(error as NodeJS.ErrnoException)
  }
  // The name, in brackets, may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, , , session, startTime] = [fields[0], fields[1], fields[2], fields[3], fields[19]]
  if (state === 'Z' || state === 'X' || session === undefined || startTime === undefined) return undefined
  return { pid, session: Number(session), startTime }
}

/** Signals a process that is still the one that was found. */
function signalTo({ pid, startTime }: Process, signal: NodeJS.Signals): void {
  if (statOf(pid)?.startTime !== startTime) return
  try {
    process.kill(pid, signal)
  } catch {
    // It ended in this moment.
  }
}
