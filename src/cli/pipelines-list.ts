/** `penstock pipelines list` and `get`: which pipelines there are, followed on request, and one with its configuration. */
import type { Pipeline, StreamPipelinesEvent } from '@penstock/client'
import { Option } from 'commander'
import { type AllNodesOptions, askAll, pipelinesOf, requireAll, withAllNodes } from './all-nodes.ts'
import { type Format, interruption } from './options.ts'
import { type AddVerb, type Common, PIPELINE } from './pipelines-options.ts'
import { coloured, PIPELINE_COLUMNS, pipelineRow, printPipeline, printPipelines } from './pipelines-shown.ts'
import { standing, unlessAborted } from './streams.ts'
import { clientFor, findPipeline, targetOf } from './target.ts'
import { named, print, printDataLine, printJson, table } from './terminal.ts'

function printEvent(event: StreamPipelinesEvent, output: Format): void {
  if (output === 'json') {
    printDataLine(event)
    return
  }
  for (const [kind, change] of Object.entries(event)) {
    const { pipeline } = change as { pipeline?: Pipeline }
    if (pipeline) print(`${kind.padEnd(6)}  ${pipeline.id}  ${named(pipeline.name)}  ${coloured(pipeline)}`)
  }
}

/** The pipelines of all nodes; throws once they are printed when a node did not answer. */
async function listEverywhere(options: Common & AllNodesOptions): Promise<void> {
  const client = clientFor(options)
  const asked = await askAll(client, options.timeout, pipelinesOf(client))
  if (options.output === 'json') {
    printJson(asked.map(({ answer, ...node }) => (answer === undefined ? node : { ...node, pipelines: answer })))
  } else {
    const rows = asked.flatMap(({ name, answer = [] }) => answer.map((each) => [named(name), ...pipelineRow(each)]))
    print(rows.length === 0 ? 'no pipelines' : table([{ title: 'NODE' }, ...PIPELINE_COLUMNS], rows))
  }
  requireAll(asked)
}

async function listPipelines(options: Common & AllNodesOptions & { watch?: boolean }): Promise<void> {
  if (options.allNodes) {
    await listEverywhere(options)
    return
  }
  const { client, node } = await targetOf(options)
  if (!options.watch) {
    const { pipelines } = await client.getPipelines({ nodeId: node })
    if (options.output === 'json') printJson(pipelines)
    else printPipelines(pipelines)
    return
  }
  const signal = interruption()
  // The stream first: a change after the list was read is an event, then.
  const events = await standing(client.streamPipelines({ nodeId: node }, { signal }), signal)
  const found = await unlessAborted(client.getPipelines({ nodeId: node }, { signal }), signal)
  if (found === undefined) return
  if (options.output === 'json') printDataLine(found.pipelines)
  else printPipelines(found.pipelines)
  for await (const event of events) printEvent(event, options.output)
}

export function addList(add: AddVerb): void {
  withAllNodes(add('list', 'list the pipelines'))
    .addOption(new Option('-w, --watch', 'then show every change until Ctrl-C').conflicts('allNodes'))
    .action(listPipelines)
}

export function addGet(add: AddVerb): void {
  add('get', 'show one pipeline and its configuration')
    .alias('show')
    .argument('<pipeline>', PIPELINE)
    .option('--config', 'print the configuration only, as it was given, with -o json too')
    .action(async (name: string, options: Common & { config?: boolean }) => {
      const { client, node } = await targetOf(options)
      const pipeline = await findPipeline(client, node, name)
      if (options.config) print(pipeline.jsonConfig)
      else printPipeline(pipeline, options.output, true)
    })
}
