/** What a listener does where the system gives no connection, though one waits. */
import { getSystemErrorMap } from 'node:util'
import { expect, test } from 'vitest'
import { NS_PER_MS, NS_PER_S, VirtualClock } from '../../engine/clock.ts'
import type { ListenerIo } from '../../engine/io.ts'
import { NativeListener } from '../../engine/native-connection.ts'
import { Accepting } from './accepting.ts'

type Parts = ConstructorParameters<typeof Accepting>

const errnoOf = (name: string): number => {
  for (const [errno, [other]] of getSystemErrorMap()) if (other === name) return errno
  throw new Error(`no errno is called ${name}`)
}

/** A listener that the system gives nothing but `-errno`: asked when it is readable, and whenever its timer is due, until `endNs`. */
function refused(name: string, endNs: number): { told: string[]; asked: number; errors: number } {
  const errno = errnoOf(name)
  const clock = new VirtualClock()
  const told: string[] = []
  let [asked, errors, due, isWatched] = [0, 0, Number.POSITIVE_INFINITY, true]
  const native = new NativeListener({} as ConstructorParameters<typeof NativeListener>[0], 1, 1, 'here', () => {
    asked++
    return errno
  })
  const listener: ListenerIo = {
    name: 'here',
    accept: () => native.accept(),
    accepting: (on) => {
      isWatched = on
    },
    close: () => {},
  }
  let acceptable = () => {}
  const context = {
    clock,
    log: (level: string, message: string) => told.push(`${clock.now / NS_PER_S} ${level} ${message}`),
    io: {
      listen: (_options: unknown, ready: () => void) => {
        acceptable = ready
        return listener
      },
    },
    metrics: { socket_errors: { add: (count: number) => (errors += count) } },
    timer: (fire: () => void) => ({ at: (ns: number) => ([due, fired] = [ns, fire]) }),
  }
  let fired = () => {}
  new Accepting(
    context as unknown as Parts[0],
    { socket: {} as Parts[1]['socket'], peers: {} as Parts[1]['peers'] },
    {} as Parts[2],
    (() => {}) as unknown as Parts[3],
    { open: 0, tell: (_subject: string, message: string) => told.push(message) } as unknown as Parts[4],
  )
  for (; clock.now < endNs; clock.advanceTo(clock.now + 10 * NS_PER_MS)) {
    if (clock.now >= due) [due] = [Number.POSITIVE_INFINITY, fired()]
    if (isWatched) acceptable()
  }
  return { told, asked, errors }
}

test.each([
  [
    'EMFILE',
    'too many open files',
    "stop other runs, or raise the process's limit of open files (ulimit -n, LimitNOFILE=)",
  ],
  [
    'ENFILE',
    'file table overflow',
    'stop other runs, or raise the number of files that this machine opens (sysctl fs.file-max)',
  ],
  ['ENOBUFS', 'no buffer space available', 'those that come wait until one can'],
  ['EACCES', 'permission denied', 'those that come wait until one can'],
])(
  '%s is told once a minute, with what to do about it, and it is tried again ten times a second',
  (name, words, cure) => {
    const { told, asked, errors } = refused(name, 70 * NS_PER_S)
    const line = `WARN no connection can be accepted (${name}, ${words}): ${cure}`
    expect(told).toEqual([`0 ${line}`, `60 ${line}`])
    expect([asked, errors]).toEqual([700, 700])
  },
)

test.each(['EAGAIN', 'ECONNABORTED', 'EPROTO', 'ENETDOWN', 'ENOTSUP', 'EHOSTDOWN'])(
  '%s, which tells of one connection or of none, is looked over',
  (name) => {
    expect(refused(name, NS_PER_S)).toEqual({ told: [], asked: 100, errors: 0 })
  },
)
