/** What a process has cost so far. */
import { readdirSync, readFileSync } from 'node:fs'

/** CPU time that all threads of a process have had, ns. */
export function cpuTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce((sum, thread) => {
    const [time] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
    return sum + Number(time)
  }, 0)
}
