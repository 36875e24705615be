/** The bar above every view: which node this is, how it stands with its hub, light or dark. */
import type { ConnectionState } from '@penstock/client'
import { hubState } from '../data/hub-state.ts'
import { useLive } from '../data/live.ts'
import { localNodeId } from '../data/local-node.ts'
import { nodes } from '../data/nodes.ts'
import { forgetToken, hasToken } from '../data/session.ts'
import { Badge, type Tone } from '../parts/badge.tsx'
import { mayLeavePage } from '../parts/leave-guard.ts'
import type { Route } from './routes.ts'
import { chooseTheme, useTheme } from './theme.ts'

const HUB: Readonly<Record<ConnectionState, readonly [tone: Tone, text: string]>> = {
  UNAUTHENTICATED: ['idle', 'on no hub'],
  DISCONNECTED: ['warn', 'hub not reached'],
  CONNECTED: ['good', 'on a hub'],
}

export function TopBar({ route }: { readonly route: Route }) {
  const { value: id } = useLive(localNodeId)
  const { byId } = useLive(nodes).value
  const { value: state, status } = useLive(hubState)
  const own = id === undefined ? undefined : byId.get(id)
  const theme = useTheme()
  const [tone, text] = status === 'lost' ? (['bad', 'not connected'] as const) : state === undefined ? [] : HUB[state]
  return (
    <header className="bar">
      <a className="brand" href="#/" aria-label="penstock">
        <Logo />
        <span>penstock</span>
      </a>
      <nav aria-label="Views">
        <a href="#/" aria-current={route.view === 'overview' ? 'page' : undefined}>
          Overview
        </a>
      </nav>
      <span className="where">
        {id !== undefined && (
          <span className="name" title={id}>
            {own?.name || id.slice(0, 8)}
          </span>
        )}
        {text !== undefined && tone !== undefined && <Badge tone={tone}>{text}</Badge>}
      </span>
      {hasToken() && (
        <button type="button" className="button plain" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
      <button
        type="button"
        className="button plain icon"
        aria-label={theme === 'dark' ? 'Light colours' : 'Dark colours'}
        title={theme === 'dark' ? 'Light colours' : 'Dark colours'}
        onClick={() => chooseTheme(theme === 'dark' ? 'light' : 'dark')}
      >
        {theme === 'dark' ? '☀' : '☾'}
      </button>
    </header>
  )
}

/** The token is kept until what is not stored was asked about: without it nothing can be stored any more. */
async function signOut(): Promise<void> {
  if (!(await mayLeavePage())) return
  forgetToken()
  location.reload()
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path
        d="M6 10h9a5 5 0 0 1 5 5v2a5 5 0 0 0 5 5h1"
        fill="none"
        stroke="#fff"
        strokeWidth="4"
        strokeLinecap="round"
      />
      <circle cx="25" cy="10" r="2.5" fill="#99e9f2" />
    </svg>
  )
}
