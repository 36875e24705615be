/** What the settings of a hub of several servers need of each other. */
import type { NodeConfig, SettingKey } from './settings.ts'

const CLUSTER_KEYS = [
  'hubServer.cluster.name',
  'hubServer.cluster.natsServers',
  'hubServer.cluster.credentialsFile',
  'hubServer.cluster.tls.caFile',
  'hubServer.cluster.tls.certificateFile',
  'hubServer.cluster.tls.keyFile',
  'hubServer.cluster.replicas',
] as const satisfies SettingKey[]

/** Faults between settings that are each right. `originOf`: where a setting was given, undefined where it was not. */
export function clusterProblems(config: NodeConfig, originOf: (key: SettingKey) => string | undefined): string[] {
  const origin = CLUSTER_KEYS.map(originOf).find((given) => given !== undefined)
  if (origin === undefined) return []
  const problems: string[] = []
  const need = (key: SettingKey, why: string) => problems.push(`${origin}: hubServer.cluster needs ${key} too: ${why}`)
  if (config['hubServer.cluster.name'] === '') need('hubServer.cluster.name', "what the hub's state is called in NATS")
  if (config['hubServer.cluster.natsServers'].length === 0) {
    need('hubServer.cluster.natsServers', "the NATS servers that keep the hub's state")
  }
  if (!config.hubServer) need('hubServer', 'this node is to host a hub (--hub)')
  if (config['hubServer.keyFile'] === '') {
    need('hubServer.keyFile', 'the key by which nodes know all servers of the hub (penstock hub key create)')
  }
  if (config['hubServer.address'] === '') {
    need('hubServer.address', 'where nodes and the other servers reach this one')
  }
  const { 'hubServer.cluster.tls.certificateFile': certificate, 'hubServer.cluster.tls.keyFile': key } = config
  if ((certificate === '') !== (key === '')) {
    problems.push(
      `${origin}: hubServer.cluster.tls.certificateFile and hubServer.cluster.tls.keyFile belong together: give both, or neither`,
    )
  }
  const hasUser = config['hubServer.cluster.natsServers'].some((address) => address.includes('@'))
  if (hasUser && config['hubServer.cluster.credentialsFile'] !== '') {
    problems.push(
      `${origin}: hubServer.cluster.natsServers has a user, and hubServer.cluster.credentialsFile is set: this server can be only one of them`,
    )
  }
  return problems
}

/** Whether this node is one server of a hub of several. */
export const isInCluster = (config: NodeConfig): boolean => config['hubServer.cluster.name'] !== ''
