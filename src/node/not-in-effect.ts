/** What a node does without as it starts, of its configuration and of what is in its data directory: told in its log, with what to do. */
import type { Logger } from 'pino'
import type { LocalDetails } from '../hub/local-details.ts'
import type { HubSigner } from '../link/hub-key.ts'
import type { Store } from '../store/store.ts'
import { isInCluster } from './cluster-settings.ts'
import type { Chosen } from './config.ts'
import type { NodeConfig } from './settings.ts'

interface Needs {
  readonly node: { readonly id: string }
  readonly signer: HubSigner | undefined
  readonly config: NodeConfig
  readonly chosen: Chosen
  readonly details: LocalDetails
  readonly store: Store
  readonly log: Logger
}

export function tellWithout(needs: Needs): void {
  tellOfDetails(needs)
  tellOfHubSettings(needs)
  tellOfHubKey(needs)
  const { config, chosen, store, log } = needs
  const signIn = store.signIn.get()
  if (config.hubServer && signIn !== undefined) {
    log.warn(
      { hub: signIn.hubAddress, from: chosen.get('hubServer') },
      'the sign-in to the hub is not in effect, as this node hosts a hub itself: start it without hubServer (--hub) and what is below that to be on the other hub again',
    )
  }
  if (config.hubServer) return
  const { length } = store.nodes.all()
  if (length === 0) return
  log.warn(
    { nodes: length },
    'the hub of this data directory is not served, as this node was started without hubServer (--hub): its nodes stay offline until it is started with that',
  )
}

/** Name and metadata that `setNode` has stored go before those of flags and variables: what was answered is kept. */
function tellOfDetails({ node, chosen, details, log }: Needs): void {
  for (const { setting, kept, option } of details.unused) {
    const from = chosen.get(setting)
    if (from === undefined) continue
    log.warn(
      { setting, from, kept },
      `${setting} is not in effect: the node keeps what "penstock nodes set" (setNode) has given it; to change that: penstock nodes set ${node.id} ${option}`,
    )
  }
}

function tellOfHubSettings({ config, chosen, log }: Needs): void {
  if (config.hubServer) return
  for (const [setting, from] of chosen) {
    if (!setting.startsWith('hubServer.')) continue
    log.warn(
      { setting, from },
      `${setting} is not in effect, as hubServer is false (${chosen.get('hubServer')}): leave either out`,
    )
  }
}

/** Nodes that know the hub by another key than this one refuse it, each for itself, where nobody sees it who looks at the hub. */
function tellOfHubKey({ node, signer, config, store, log }: Needs): void {
  if (!config.hubServer || isInCluster(config)) return
  const { length } = store.nodes.all()
  const hub = signer?.hubId ?? node.id
  const known = store.hubId.get() ?? hub
  if (length === 0 || known === hub) return
  log.warn(
    { nodes: length, known, hub },
    `the nodes of this hub know it by the key ${known}, and it is served by the key ${hub}: they stay offline until it is started with that key (hubServer.keyFile, --hub-key-file), or they join anew`,
  )
}
