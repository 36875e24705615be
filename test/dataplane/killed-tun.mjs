/** A process that is killed while it exchanges large packets with the TUN interface pst0, which lasts. */
import { native } from '../../dist/src/dataplane/native/native.js'

native.tunOpen(native.ownerOpen(), {
  kind: 'tun',
  name: 'pst0',
  address: '10.99.0.1',
  prefix: 24,
  mtu: 1280,
  defaultRoute: false,
  offload: true,
})
process.kill(process.pid, 'SIGKILL')
