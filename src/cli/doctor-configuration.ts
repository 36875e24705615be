/** Whether a node could be started with a configuration: its values, and the files that it names for a hub. */

import { readHubKey } from '../link/hub-key.ts'
import { engineSettings } from '../node/cluster.ts'
import { isInCluster } from '../node/cluster-settings.ts'
import { messageOf } from '../text/error-message.ts'
import type { Finding } from './doctor-finding.ts'
import { loadNodeConfig } from './node-settings.ts'

export async function configuration(file: string): Promise<Finding> {
  const check = 'configuration'
  try {
    const { config } = await loadNodeConfig({ config: file })
    const keyFile = config['hubServer.keyFile']
    if (keyFile !== '') readHubKey(keyFile)
    const { access } = isInCluster(config) ? engineSettings(config, new Uint8Array(32)) : {}
    const found = access?.().outOfTime
    if (found !== undefined) return { check, grade: 'warn', found, advice: 'NATS servers let nobody in with it' }
    const role = isInCluster(config) ? 'a server of a hub of several' : config.hubServer ? 'a hub' : 'a node'
    return { check, grade: 'ok', found: `${file} makes ${role}` }
  } catch (error) {
    return { check, grade: 'fail', found: messageOf(error), advice: 'penstock up would not start with it' }
  }
}
