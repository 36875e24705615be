/** `penstock complete`: what completion scripts ask for at a Tab, names that only the node knows. */
import type { Client } from '@penstock/client'
import type { Command } from 'commander'
import { pipelinesOf } from './all-nodes.ts'
import { pause } from './options.ts'
import { findPipeline, type TargetOptions, targetOf } from './target.ts'
import { named, print } from './terminal.ts'

/** A node that has not answered by then, ms, is not waited for: somebody sits before the prompt. */
const PATIENCE_MS = 1_000

type Kind = 'pipeline' | 'run' | 'pipeline or run' | 'node' | 'component' | 'metric' | 'variable' | 'token'

/** What the arguments of a command are; the last stands for all that follow too. `undefined`: what no node knows. */
const ARGUMENTS: Readonly<Record<string, readonly (Kind | undefined)[]>> = {
  'pipelines get': ['pipeline'],
  'pipelines update': ['pipeline', undefined],
  'pipelines set': ['pipeline', 'variable'],
  'pipelines delete': ['pipeline'],
  'pipelines start': ['pipeline'],
  'pipelines stop': ['pipeline'],
  'pipelines export': ['pipeline'],
  'pipelines logs': ['pipeline or run'],
  'pipelines telemetry': ['pipeline or run', 'component'],
  'pipelines tap': ['pipeline', 'component'],
  'nodes set': ['node'],
  'nodes remove': ['node'],
  'token revoke': ['token'],
}

const OPTIONS: Readonly<Record<string, Kind>> = {
  '--run': 'run',
  '--node': 'node',
  '--component': 'component',
  '--metric': 'metric',
}

/** The command paths and the options after which the node is asked. */
export const ASKING = { paths: Object.keys(ARGUMENTS), options: Object.keys(OPTIONS) }

/** Names of a kind; `given`: the pipeline that the command line names already. */
async function namesOf(kind: Kind, client: Client, node: string, given: string | undefined): Promise<string[]> {
  if (kind === 'node') return (await client.getNodes()).nodes.map(({ name, id }) => name || id)
  if (kind === 'token') return (await client.getTokens()).tokens.map(({ name }) => name)
  if (kind === 'component' || kind === 'metric' || kind === 'variable') {
    const meant = given === undefined ? undefined : [await findPipeline(client, node, given)]
    const { namesIn } = await import('./configuration-names.ts')
    return (meant ?? (await pipelinesOf(client)(node))).flatMap(({ jsonConfig }) => namesIn(jsonConfig, kind))
  }
  const { pipelines } = await client.getPipelines({ nodeId: node })
  const runs = pipelines.flatMap(({ currentRun }) => (currentRun === undefined ? [] : [currentRun.id]))
  const names = pipelines.map(({ name }) => name)
  return kind === 'pipeline' ? names : kind === 'run' ? runs : [...names, ...runs]
}

/** The command that `words` name, and what is left of them. */
function commandOf(program: Command, words: readonly string[]): { command: Command; path: string; rest: string[] } {
  let [command, at] = [program, 0]
  const path: string[] = []
  for (; at < words.length; at++) {
    const next = command.commands.find((each) => each.name() === words[at] || each.aliases().includes(words[at]!))
    if (next === undefined) break
    command = next
    path.push(next.name())
  }
  return { command, path: path.join(' '), rest: words.slice(at) }
}

/** Names that may follow `words`, those after `penstock`; none where the node has nothing to say. */
async function following(program: Command, words: readonly string[]): Promise<string[]> {
  const { command, path, rest } = commandOf(program, words)
  const option = OPTIONS[rest.at(-1) ?? '']
  command.configureOutput({ writeErr: () => undefined })
  const { operands } = command.parseOptions(option === undefined ? rest : rest.slice(0, -1))
  const kinds = ARGUMENTS[path] ?? []
  const kind = option ?? kinds[Math.min(operands.length, kinds.length - 1)]
  const last = command.registeredArguments.at(-1)
  const isFull = operands.length >= command.registeredArguments.length && last?.variadic !== true
  if (kind === undefined || (option === undefined && isFull)) return []
  const options = command.opts<TargetOptions & { node?: string | string[] }>()
  // Of several nodes none is the one meant.
  if (Array.isArray(options.node)) delete options.node
  const { client, node } = await targetOf(options)
  const names = await namesOf(kind, client, node, kinds.length > 0 ? operands[0] : undefined)
  // One with control characters would be told otherwise than it is, or as several.
  return [...new Set(names)].filter((name) => named(name) === name).sort()
}

export function addComplete(program: Command): void {
  program
    .command('complete', { hidden: true })
    .description('Prints names that may follow the words of a command line. Completion scripts call it.')
    .argument('[words...]', 'what is typed already, after --')
    .action(async (words: string[]) => {
      const over = new AbortController()
      const none = async (): Promise<string[]> => []
      const names = await Promise.race([
        following(program, words).catch(none),
        pause(PATIENCE_MS, over.signal).then(none),
      ])
      if (names.length > 0) print(names.join('\n'))
      // A request under way is of no use any more.
      process.exit(0)
    })
}
