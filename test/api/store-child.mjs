/** Opens a store in memory, where commits follow closely, changes it in several of them, and closes it, some times over; prints how often. */
import { mkdtempSync, rmSync } from 'node:fs'
import { Store } from '../../dist/src/store/store.js'

const ROUNDS = 150
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

let done = 0
for (; done < ROUNDS; done++) {
  const directory = mkdtempSync('/dev/shm/penstock-store-')
  const store = new Store(directory)
  const changes = []
  for (let n = 0; n < 12; n++) {
    changes.push(store.hubId.put(`hub ${n}`))
    if (n % 3 === 2) await nextTurn()
  }
  await Promise.all(changes)
  await store.close()
  rmSync(directory, { recursive: true })
}
console.log(done)
