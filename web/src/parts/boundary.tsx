/** Keeps a fault in what draws a part of the page to that part: it says so, and the rest stays. */
import { Component, type ReactNode } from 'react'
import { failureOf } from '../data/live.ts'
import { TryAgain } from './try-again.tsx'

interface Props {
  readonly children: ReactNode
}

interface State {
  readonly failure: { readonly error: unknown } | undefined
}

export class Boundary extends Component<Props, State> {
  override state: State = { failure: undefined }

  static getDerivedStateFromError(error: unknown): State {
    return { failure: { error } }
  }

  override render(): ReactNode {
    const { failure } = this.state
    if (failure === undefined) return this.props.children
    return (
      <div className="failure" role="alert">
        <strong>This cannot be shown: the page has a fault</strong>
        <p>{failureOf(failure.error).message}</p>
        <TryAgain onAgain={() => this.setState({ failure: undefined })} />
      </div>
    )
  }
}
