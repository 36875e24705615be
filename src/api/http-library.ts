/** uWebSockets.js, loaded at one place: there may be no binary of it for the Node.js that runs. */

/** What to do where it cannot be loaded. */
export const HTTP_LIBRARY_ADVICE =
  "in the folder where penstock is installed, npm pkg set 'overrides[uWebSockets.js]=github:uNetworking/uWebSockets.js#v20.67.0' and " +
  'npm install again (that release is for Node.js 22, 24 and 26), or use Node.js 20.19 to 22'

export class HttpLibraryMissing extends Error {
  override readonly name = 'HttpLibraryMissing'

  constructor(cause: unknown) {
    super(
      `uWebSockets.js, which serves HTTP, has no binary for Node.js ${process.versions.node} in the package that npm installed: ` +
        HTTP_LIBRARY_ADVICE,
      { cause },
    )
  }
}

export const uWS = await import('uWebSockets.js').catch((cause: unknown) => {
  throw new HttpLibraryMissing(cause)
})
