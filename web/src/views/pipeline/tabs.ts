/** The tabs of a pipeline: each has its own address, the first is that of the pipeline. */
import type { ComponentType } from 'react'
import { variablesOf } from '../../data/variables.ts'
import { ImpairTab } from '../impair/impair-tab.tsx'
import { ChartsTab } from './charts-tab.tsx'
import { ConfigurationTab } from './configuration-tab.tsx'
import { GraphTab } from './graph-tab.tsx'
import { LogTab } from './log-tab.tsx'
import type { TabProps } from './tab-props.ts'
import { VariablesTab } from './variables-tab.tsx'

interface Tab {
  readonly id: string
  readonly title: string
  readonly View: ComponentType<TabProps>
  /** Whether a pipeline has it; left out: every one does. */
  readonly isIn?: (props: TabProps) => boolean
}

const TABS: readonly Tab[] = [
  { id: 'graph', title: 'Graph', View: GraphTab },
  { id: 'charts', title: 'Charts', View: ChartsTab },
  { id: 'log', title: 'Log', View: LogTab },
  {
    id: 'variables',
    title: 'Variables',
    View: VariablesTab,
    isIn: ({ pipeline }) => variablesOf(pipeline.jsonConfig).length > 0,
  },
  { id: 'configuration', title: 'Configuration', View: ConfigurationTab },
  {
    id: 'impair',
    title: 'Impair',
    View: ImpairTab,
    isIn: ({ configuration }) => configuration.components.some(({ family }) => family === 'emulation'),
  },
]

/** The tabs that a pipeline has. */
export function tabsOf(props: TabProps): readonly Tab[] {
  return TABS.filter(({ isIn }) => isIn?.(props) ?? true)
}
