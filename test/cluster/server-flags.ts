/** Flags of a hub server in a process or node of its own, on NATS servers of the test. */
import { freeAddress } from '../hub/callers.ts'

export async function serverFlags(name: string, keyFile: string, natsServer: string) {
  const http = await freeAddress()
  return {
    ...{ http, grpc: 'none', 'node-name': name, hub: 'true', 'hub-key-file': keyFile, 'hub-address': `http://${http}` },
    ...{ 'hub-cluster-name': 'tests', 'hub-cluster-replicas': '1', 'hub-cluster-nats-servers': `nats://${natsServer}` },
  }
}
