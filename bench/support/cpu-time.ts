/** What a process has cost so far. */
import { readdirSync, readFileSync } from 'node:fs'

/** CPU time that all threads of a process have had, ns. */
export function cpuTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce((sum, thread) => sum + threadTime(pid, thread), 0)
}

/** CPU time that the first thread of a process has had, ns. */
export function mainThreadTime(pid: number): number {
  return threadTime(pid, String(pid))
}

function threadTime(pid: number, thread: string): number {
  const [time] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
  return Number(time)
}
