/** The configuration as text; its editor is fetched when it is first shown. */
import { Later, LoadedLater } from '../../parts/loaded-later.tsx'
import type { TabProps } from './tab-props.ts'

const configuration = new Later(() => import('../configuration/configuration.tsx'))

export function ConfigurationTab({ nodeId, pipeline, isGone }: TabProps) {
  return <LoadedLater later={configuration} props={{ nodeId, pipeline, isGone }} />
}
