/** rest: getLocalNodeId and getPipelineById of a node against a bare uWebSockets.js route that answers the same bytes, by CPU time. */
import { type Bench, inTurn, runAlone } from './measure.ts'
import { makePipeline, restRate, Server } from './support/servers.ts'

const SECONDS = 1.5

/** The headers of an answer that a bare route has to set by itself. */
const COPIED = ['content-type', 'cache-control']

export const bench: Bench = async () => {
  const node = await Server.node()
  const { node: nodeId, id } = await makePipeline(node.port, 'bench')
  const paths = {
    getLocalNodeId: '/v1/hub-client/local-node-id',
    getPipelineById: `/v1/nodes/${nodeId}/pipelines/${id}`,
  }
  const rest: Record<string, { headers: Record<string, string>; body: string }> = {}
  for (const path of Object.values(paths)) {
    const answer = await fetch(`http://127.0.0.1:${node.port}${path}`)
    const headers = Object.fromEntries(COPIED.map((name) => [name, answer.headers.get(name) ?? '']))
    rest[path] = { headers, body: await answer.text() }
  }
  const bare = await Server.bare({ rest })
  try {
    const rates = await inTurn(5, {
      bareId: () => restRate(bare, paths.getLocalNodeId, SECONDS),
      id: () => restRate(node, paths.getLocalNodeId, SECONDS),
      barePipeline: () => restRate(bare, paths.getPipelineById, SECONDS),
      pipeline: () => restRate(node, paths.getPipelineById, SECONDS),
    })
    const unit = 'answers per CPU second'
    return {
      name: 'rest: one operation against a bare route that answers the same bytes',
      rows: [
        { label: 'bare route, getLocalNodeId', value: rates.bareId, unit },
        { label: 'getLocalNodeId', value: rates.id, unit, ratio: rates.id / rates.bareId, goal: '≥ 0.85' },
        { label: 'bare route, getPipelineById', value: rates.barePipeline, unit },
        {
          label: 'getPipelineById',
          value: rates.pipeline,
          unit,
          ratio: rates.pipeline / rates.barePipeline,
          goal: '≥ 0.85',
        },
      ],
    }
  } finally {
    await node.stop()
    await bare.stop()
  }
}

await runAlone(import.meta.url, bench)
