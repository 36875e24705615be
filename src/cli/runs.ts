/** Which run a command means, and the runs that come after it. */
import type { CallOptions, Client, Pipeline, Run, StreamPipelinesEvent } from '@penstock/client'
import { hasCode } from './client.ts'
import { UsageFailure } from './failure.ts'
import { isWholeId } from './ids.ts'
import { standing, unlessAborted } from './streams.ts'
import { findRun, findRunId, pipelineCalled } from './target.ts'

/** The id of the run meant: `run`; else the current one of the pipeline called `given`, by id or name; else the run with that id, or that beginning of one. */
export async function meantRun(
  client: Client,
  node: string,
  given: string | undefined,
  run: string | undefined,
): Promise<string> {
  if (run !== undefined) return await findRunId(client, node, run)
  if (given === undefined) throw new UsageFailure('name a pipeline or a run')
  // Others are not looked for among the runs, which takes a node 2 s where there is none.
  if (!isWholeId(given)) {
    const isPipeline = (await pipelineCalled(client, node, given)) !== undefined
    const begun = isPipeline ? given : await findRunId(client, node, given)
    return begun === given ? await findRun(client, node, given, undefined) : begun
  }
  try {
    const { pipeline } = await client.getPipelineById({ nodeId: node, id: given })
    if (pipeline?.currentRun !== undefined) return pipeline.currentRun.id
  } catch (error) {
    if (!hasCode(error, 'NOT_FOUND')) throw error
    const isRun = await client.getPipelineByRunId({ nodeId: node, id: given }).then(
      () => true,
      () => false,
    )
    if (isRun) return given
  }
  return await findRun(client, node, given, undefined)
}

/** The pipeline that is meant, whether it has a run or not. */
export async function meantPipeline(
  client: Client,
  node: string,
  given: string | undefined,
  run: string | undefined,
): Promise<Pipeline> {
  if (run === undefined && given !== undefined && !isWholeId(given)) {
    const pipeline = await pipelineCalled(client, node, given)
    if (pipeline !== undefined) return pipeline
  }
  const id = await meantRun(client, node, given, run)
  return (await client.getPipelineByRunId({ nodeId: node, id })).pipeline!
}

/** The record of a run; undefined when the node that is asked leaves it out. */
export async function recordOf(
  client: Client,
  nodeId: string,
  id: string,
  options?: CallOptions,
): Promise<Run | undefined> {
  const { run, pipeline } = await client.getPipelineByRunId({ nodeId, id }, options)
  return run ?? (pipeline?.currentRun?.id === id ? pipeline.currentRun : undefined)
}

/** Whether the node has no pipeline of that id any more. */
export async function isDeleted(client: Client, node: string, pipeline: string): Promise<boolean> {
  try {
    await client.getPipelineById({ nodeId: node, id: pipeline })
    return false
  } catch (error) {
    return hasCode(error, 'NOT_FOUND')
  }
}

/** The runs of a pipeline as they come, told from the moment this was opened. */
export class ComingRuns {
  readonly #seen: Set<string>
  readonly #coming: Run[] = []
  #isOver = false
  #failure: unknown
  #wake: () => void = () => undefined

  private constructor(known: readonly string[]) {
    this.#seen = new Set(known)
  }

  /** Those of `pipeline` that are not in `known`; none once `signal` has aborted or the pipeline is deleted. */
  static async open(
    client: Client,
    { node, pipeline, known }: { node: string; pipeline: string; known: readonly string[] },
    signal: AbortSignal,
  ): Promise<ComingRuns> {
    const runs = new ComingRuns(known)
    // The stream first: what happens after the pipeline was read is an event, then.
    const events = await standing(client.streamPipelines({ nodeId: node }, { signal }), signal)
    const found = await unlessAborted(client.getPipelineById({ nodeId: node, id: pipeline }, { signal }), signal)
    runs.#add(found?.pipeline?.currentRun)
    runs.#read(events, pipeline).catch((error: unknown) => runs.#end(signal.aborted ? undefined : error))
    return runs
  }

  /** The next run, once there is one; undefined when there will be none. */
  async next(): Promise<Run | undefined> {
    for (;;) {
      const run = this.#coming.shift()
      if (run !== undefined || (this.#isOver && this.#failure === undefined)) return run
      if (this.#failure !== undefined) throw this.#failure
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async #read(events: AsyncIterable<StreamPipelinesEvent>, pipeline: string): Promise<void> {
    for await (const { update, delete: deleted } of events) {
      if (deleted?.pipeline?.id === pipeline) break
      if (update?.pipeline?.id === pipeline) this.#add(update.pipeline.currentRun)
    }
    this.#end(undefined)
  }

  #add(run: Run | undefined): void {
    if (run === undefined || this.#seen.has(run.id)) return
    this.#seen.add(run.id)
    this.#coming.push(run)
    this.#wake()
  }

  #end(failure: unknown): void {
    this.#isOver = true
    this.#failure = failure
    this.#wake()
  }
}
