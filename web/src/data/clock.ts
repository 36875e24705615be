/** The node's time, as its answers tell it: the clock of a browser may be hours off. */

/** Milliseconds by which it is ahead of the browser's, as far as is known. */
let lead = 0

/** Calls as the platform does, and hears the time of each answer; none comes from a cache. */
export const timedFetch = async (url: string, init: RequestInit): Promise<Response> => {
  const answer = await fetch(url, init)
  const told = Date.parse(answer.headers.get('date') ?? '')
  if (!Number.isNaN(told)) lead = told - Date.now()
  return answer
}

/** Milliseconds since 1970, to about a second. */
export const nodeNow = (): number => Date.now() + lead
