/** The frame around every view: who may see anything, the top bar, what went wrong. */
import { useEffect, useRef } from 'react'
import { hubState } from '../data/hub-state.ts'
import { retryRefused, useLive } from '../data/live.ts'
import { localNodeId } from '../data/local-node.ts'
import { Boundary } from '../parts/boundary.tsx'
import { ConfirmDialog } from '../parts/confirm.tsx'
import { ConnectionLost } from '../parts/connection-lost.tsx'
import { Failure } from '../parts/failure.tsx'
import { Later, LoadedLater } from '../parts/loaded-later.tsx'
import { Nothing } from '../parts/nothing.tsx'
import { Toasts } from '../parts/toasts.tsx'
import { Overview } from '../views/overview/overview.tsx'
import { type Route, useRoute } from './routes.ts'
import { SignIn, SignInAgain } from './sign-in.tsx'
import { TopBar } from './top-bar.tsx'

const pipelineView = new Later(() => import('../views/pipeline/pipeline.tsx'))
const editorView = new Later(() => import('../views/editor/editor.tsx'))
/** Milliseconds after which the other views are fetched: the first is there by then. They are at hand when the node is away, or is another version. */
const PREFETCH = 1_000

export function App() {
  const { status, error } = useLive(localNodeId)
  if (error?.code === 'UNAUTHENTICATED') return <SignIn error={error} onToken={retryRefused} />
  if (status === 'failed' && error !== undefined) {
    return (
      <main className="page">
        <Failure error={error} title="The node does not let this page in" />
      </main>
    )
  }
  if (status === 'opening') {
    return (
      <main className="page">
        <p className="quiet">Loading…</p>
      </main>
    )
  }
  return <SignedIn />
}

/** Once the token is revoked another one is asked for; what was typed stays meanwhile, unseen. */
function SignedIn() {
  const { error } = useLive(hubState)
  const isRefused = error?.code === 'UNAUTHENTICATED'
  return (
    <>
      <div className={isRefused ? 'covered' : ''}>
        <Shell />
      </div>
      {isRefused && <SignInAgain error={error} onToken={retryRefused} />}
    </>
  )
}

function Shell() {
  const route = useRoute()
  const main = useRef<HTMLElement>(null)
  // The tabs of a pipeline are one view.
  const { view, nodeId, pipelineId, path }: Partial<Record<string, string>> = { ...route }
  const key = JSON.stringify([view, nodeId, pipelineId, path])
  const isFirst = useRef(true)
  // After a change of view the keyboard goes on in the new one.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the view is what changes
  useEffect(() => {
    if (!isFirst.current) main.current?.focus()
    isFirst.current = false
  }, [key])
  useEffect(() => {
    const timer = setTimeout(() => {
      pipelineView.prefetch()
      editorView.prefetch()
    }, PREFETCH)
    return () => clearTimeout(timer)
  }, [])
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <TopBar route={route} />
      <Connection />
      <main className="page" id="main" ref={main} tabIndex={-1}>
        <Boundary key={key}>
          <View route={route} />
        </Boundary>
      </main>
      <Toasts />
      <ConfirmDialog />
    </>
  )
}

function View({ route }: { readonly route: Route }) {
  switch (route.view) {
    case 'overview':
      return <Overview />
    case 'pipeline':
      return (
        <LoadedLater
          later={pipelineView}
          props={{ nodeId: route.nodeId, pipelineId: route.pipelineId, tab: route.tab }}
        />
      )
    case 'editor':
      return <LoadedLater later={editorView} props={{ nodeId: route.nodeId, pipelineId: route.pipelineId }} />
    case 'unknown':
      return (
        <Nothing title="There is nothing here">
          <p>
            There is nothing at <code>{route.path}</code>.
          </p>
        </Nothing>
      )
  }
}

/** Says that the node is not reached, and that it is tried again. */
function Connection() {
  const { status, error } = useLive(hubState)
  return (
    <>
      <ConnectionLost isLost={status === 'lost'} error={error} />
      {status === 'failed' && (
        <p className="banner" role="status">
          {error?.message}{' '}
          <button type="button" className="button small" onClick={() => hubState.retry()}>
            Try again
          </button>
        </p>
      )}
    </>
  )
}
