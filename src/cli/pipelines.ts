/** `penstock pipelines`: the operations on pipelines of a node, each verb in a file of its own. */
import type { Command } from 'commander'
import { addLogs } from './logs.ts'
import { withOutput } from './options.ts'
import { addApply } from './pipelines-apply.ts'
import { addCreate, addValidate } from './pipelines-create.ts'
import { addDelete } from './pipelines-delete.ts'
import { addExport } from './pipelines-export.ts'
import { addGet, addList } from './pipelines-list.ts'
import type { AddVerb } from './pipelines-options.ts'
import { addStartAndStop } from './pipelines-start.ts'
import { addTap } from './pipelines-tap.ts'
import { addSet, addUpdate } from './pipelines-update.ts'
import { withTarget } from './target.ts'
import { addTelemetry } from './telemetry.ts'

export function addPipelines(program: Command): void {
  const pipelines = program
    .command('pipelines')
    .summary("a node's pipelines")
    .description("Works on a node's pipelines.")
  const add: AddVerb = (usage, summary) =>
    withTarget(withOutput(pipelines.command(usage)))
      .summary(summary)
      .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
  for (const addVerb of [
    addList,
    addGet,
    addCreate,
    addValidate,
    addUpdate,
    addSet,
    addDelete,
    addStartAndStop,
    addLogs,
    addTelemetry,
    addTap,
  ]) {
    addVerb(add)
  }
  addApply(pipelines)
  addExport(pipelines)
}
