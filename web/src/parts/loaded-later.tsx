/** Parts of the page that are fetched when they are first shown. One that does not come says so in its place, and can be asked for again. */
import { type FunctionComponent, useEffect, useState } from 'react'
import { failureOf } from '../data/live.ts'
import { TryAgain } from './try-again.tsx'

/** A part as the module that has it exports it. */
interface Module<Props> {
  readonly default: FunctionComponent<Props>
}

export class Later<Props extends object> {
  readonly #load: () => Promise<Module<Props>>
  /** Undefined until it is there. */
  #part: FunctionComponent<Props> | undefined

  constructor(load: () => Promise<Module<Props>>) {
    this.#load = load
  }

  get part(): FunctionComponent<Props> | undefined {
    return this.#part
  }

  async fetch(): Promise<FunctionComponent<Props>> {
    this.#part = (await this.#load()).default
    return this.#part
  }

  /** Fetches it before it is shown; where that fails it is fetched when it is. */
  prefetch(): void {
    this.fetch().catch(() => {})
  }
}

interface LoadedProps<Props extends object> {
  readonly later: Later<Props>
  readonly props: Props
}

export function LoadedLater<Props extends object>({ later, props }: LoadedProps<Props>) {
  const [Part, setPart] = useState(() => later.part)
  const [failure, setFailure] = useState<unknown>()
  const [attempts, setAttempts] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: every attempt asks once
  useEffect(() => {
    if (Part !== undefined) return
    later.fetch().then((part) => setPart(() => part), setFailure)
  }, [attempts])
  if (Part !== undefined) return <Part {...props} />
  if (failure === undefined) return <p className="quiet">Loading…</p>
  const again = (): void => {
    setFailure(undefined)
    setAttempts(attempts + 1)
  }
  return (
    <div className="failure" role="alert">
      <strong>This part of the page did not come</strong>
      <p>{failureOf(failure).message}</p>
      <p>
        The node was not reached, or has become another version since the page was opened; then the page has to be
        loaded anew.
      </p>
      <TryAgain onAgain={again} />
    </div>
  )
}
