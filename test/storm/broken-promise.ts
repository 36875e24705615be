/** What was answered does not hold. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise'
}
