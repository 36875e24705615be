/** The commands around a run, `lifecycle_handler` of a configuration: their schema, and what it cannot say. */
import { type Static, Type } from '@sinclair/typebox'
import { below, type Problem } from '../../text/pointer.ts'
import { Enumeration, Milliseconds, Optional, Text } from './schema.ts'

/** Most commands of one hook. */
const MAX_COMMANDS = 64
/** Longest command, and longest value of an environment variable, characters: the kernel takes 128 KiB of each (execve(2)). */
const MAX_COMMAND_LENGTH = 32_768

const Environment = Type.Object({
  vars: Type.Record(Type.String(), Type.String({ maxLength: MAX_COMMAND_LENGTH }), { default: {} }),
})

const Command = Type.Object({
  cmd: Text('What /bin/sh runs.', { minLength: 1, maxLength: MAX_COMMAND_LENGTH }),
  cwd: Optional(
    Text('Working directory, relative to the files of the data directory; unset: those.', { minLength: 1 }),
  ),
  policy: Enumeration(
    'What its failure means.',
    'CommandExecutionPolicy',
    { STOP_ON_ERROR: 0, CONTINUE_ON_ERROR: 1, RUN_IN_BACKGROUND: 2 },
    { default: 'STOP_ON_ERROR' },
  ),
  timeout: Optional(Milliseconds('How long it may take; unset or 0: 10 seconds.')),
  env: Optional(Environment),
})

const Commands = (description: string) => Type.Array(Command, { maxItems: MAX_COMMANDS, default: [], description })

export const LifecycleHandler = Type.Object({
  env: Optional(Environment),
  on_setup: Commands('Before the graph is built.'),
  pre_start: Commands('Before packets flow; sockets and interfaces are there.'),
  post_start: Commands('Once packets flow.'),
  pre_stop: Commands('Before the run stops.'),
  post_stop: Commands('After the run has ended, however it did.'),
})

/** Checked, defaults filled in. */
export type LifecycleHandler = Static<typeof LifecycleHandler>
export type LifecycleCommand = LifecycleHandler[Hook][number]

export const HOOKS = ['on_setup', 'pre_start', 'post_start', 'pre_stop', 'post_stop'] as const
/** When commands run. */
export type Hook = (typeof HOOKS)[number]

/** Whether there is any command. */
export function hasCommands(handler: LifecycleHandler | undefined): handler is LifecycleHandler {
  return handler !== undefined && HOOKS.some((hook) => handler[hook].length > 0)
}

/** What the system would refuse of a handler that the schema takes; pointers begin at it, keys in snake_case. */
export function lifecycleFaults(handler: LifecycleHandler): Problem[] {
  const faults = environmentFaults(handler.env, '/env')
  for (const hook of HOOKS) {
    for (const [i, { cmd, cwd = '', env }] of handler[hook].entries()) {
      const at = below(below('', hook), i)
      for (const [field, text] of Object.entries({ cmd, cwd })) {
        if (text.includes('\0')) faults.push({ pointer: below(at, field), message: 'must not hold a NUL character' })
      }
      for (const fault of environmentFaults(env, below(at, 'env'))) faults.push(fault)
    }
  }
  return faults
}

function environmentFaults(env: LifecycleHandler['env'], at: string): Problem[] {
  return Object.entries(env?.vars ?? {}).flatMap(([name, value]) => {
    const pointer = below(below(at, 'vars'), name)
    if (name === '' || /[=\0]/.test(name)) {
      return [{ pointer, message: 'the name of an environment variable is not empty and holds neither = nor NUL' }]
    }
    return value.includes('\0') ? [{ pointer, message: 'must not hold a NUL character' }] : []
  })
}
