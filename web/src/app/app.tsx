/** The frame around every view: who may see anything, the top bar, what went wrong. */
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { hubState } from '../data/hub-state.ts'
import { useLive } from '../data/live.ts'
import { localNodeId } from '../data/local-node.ts'
import { ConfirmDialog } from '../parts/confirm.tsx'
import { Failure } from '../parts/failure.tsx'
import { Toasts } from '../parts/toasts.tsx'
import { Overview } from '../views/overview/overview.tsx'
import { type Route, useRoute } from './routes.ts'
import { SignIn } from './sign-in.tsx'
import { TopBar } from './top-bar.tsx'

const PipelineView = lazy(() => import('../views/pipeline/pipeline.tsx'))
const EditorView = lazy(() => import('../views/editor/editor.tsx'))

export function App() {
  const { status, error } = useLive(localNodeId)
  if (error?.code === 'UNAUTHENTICATED') return <SignIn error={error} onToken={() => location.reload()} />
  if (status === 'failed' && error !== undefined) {
    return (
      <main className="page">
        <Failure error={error} title="The node does not let this page in" />
      </main>
    )
  }
  return status === 'opening' ? null : <SignedIn />
}

/** Until the token is revoked. */
function SignedIn() {
  const { error } = useLive(hubState)
  if (error?.code === 'UNAUTHENTICATED') return <SignIn error={error} onToken={() => location.reload()} />
  return <Shell />
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
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <TopBar route={route} />
      <Connection />
      <main className="page" id="main" ref={main} tabIndex={-1}>
        <Suspense fallback={<p className="quiet">Loading…</p>}>
          <View route={route} key={key} />
        </Suspense>
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
      return <PipelineView nodeId={route.nodeId} pipelineId={route.pipelineId} tab={route.tab} />
    case 'editor':
      return <EditorView nodeId={route.nodeId} pipelineId={route.pipelineId} />
    case 'unknown':
      return (
        <p>
          There is nothing at <code>{route.path}</code>. <a href="#/">Go to the overview</a>
        </p>
      )
  }
}

/** Milliseconds for which a break is not worth a word. */
const PATIENCE = 800

/** Says that the node is not reached, and that it is tried again; gone once it is. */
function Connection() {
  const { status, error } = useLive(hubState)
  const [isShown, setShown] = useState(false)
  const isLost = status === 'lost'
  useEffect(() => {
    if (!isLost) {
      setShown(false)
      return
    }
    const timer = setTimeout(() => setShown(true), PATIENCE)
    return () => clearTimeout(timer)
  }, [isLost])
  return (
    <div role="status">
      {isShown && (
        <p className="banner">
          <strong>Connection lost, trying again:</strong> {error?.message}. What is shown may be old.
        </p>
      )}
      {status === 'failed' && (
        <p className="banner">
          {error?.message}{' '}
          <button type="button" className="button small" onClick={() => hubState.retry()}>
            Try again
          </button>
        </p>
      )}
    </div>
  )
}
