/** What to do about a start that the system had no means for, by the error that it answered with. */

const FILES = "stop other runs, or raise the process's limit of open files (ulimit -n, LimitNOFILE=)"
const CURES: readonly (readonly [RegExp, string])[] = [
  [/\bEMFILE\b/, FILES],
  [/\bENFILE\b/, 'stop other runs, or raise the number of files that this machine opens (sysctl fs.file-max)'],
  [
    /\bEAGAIN\b|\bERR_WORKER_INIT_FAILED\b/,
    'stop other runs, or raise the limit of threads (ulimit -u, TasksMax= of a systemd unit, --pids-limit of a container)',
  ],
]

/** `message` with what to do, where it names such an error and does not say so yet. */
export function withCure(message: string): string {
  const cure = CURES.find(([error]) => error.test(message))?.[1]
  return cure === undefined || message.includes('ulimit') ? message : `${message}; ${cure}`
}
