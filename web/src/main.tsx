// Views come after what all of them use.
import './app/colours.css'
import './app/base.css'
import './parts/controls.css'
import './parts/messages.css'
import './app/frame.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app/app.tsx'
import { applyTheme } from './app/theme.ts'

applyTheme()
createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
